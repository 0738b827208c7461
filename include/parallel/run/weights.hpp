// Weights of others: a table says which tensors of a file are which parameters, and how they lie; by it a model is read
// from a file, and written to one. Needs nlohmann-json.
#pragma once
#include <parallel/run/load_weights.hpp>
#include <parallel/run/save_weights.hpp>
#include <parallel/run/weight_table.hpp>
