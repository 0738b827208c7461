// Everything that a model and its plan need: annotations, operations, optimizers, plans. No Eigen, no MPI, no CUDA.
#pragma once
#include <parallel/model/module.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/operation/operations.hpp>
#include <parallel/plan/derive.hpp>
#include <parallel/question/assertion.hpp>
#include <parallel/question/text.hpp>
