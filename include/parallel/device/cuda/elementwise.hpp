// Functions of one to three numbers, and their gradients, for whole tensors.
#pragma once
#include <parallel/device/cuda/map.hpp>

namespace parallel::cuda {

// clang-format off
struct Add      { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x + y; } };
struct Subtract { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x - y; } };
struct Multiply { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x * y; } };
struct Divide   { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x / y; } };
struct Relu     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return x < 0 ? T{0} : x; } };
struct ReluDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T g) const { return x > 0 ? g : T{0}; } };
// clang-format on

/// The kernel of a function of one operand, of two, whose element type is the result's.
template <class T, class Function>
void unary(const Call& call) {
  map<Function, T, T>(call, Function{});
}
template <class T, class Function>
void binary(const Call& call) {
  map<Function, T, T, T>(call, Function{});
}

}  // namespace parallel::cuda
