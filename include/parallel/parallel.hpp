// Everything that a model and its plan need: annotations, operations, optimizers, plans. No Eigen, no MPI, no CUDA.
#pragma once
#if __cplusplus < 202002L
#error "parallel: the library is C++20; compile with -std=c++20"
#else
#include <parallel/model/module.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/operation/operations.hpp>
#include <parallel/plan/derive.hpp>
#include <parallel/question/assertion.hpp>
#include <parallel/question/text.hpp>
#endif
