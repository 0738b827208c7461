// A GPU as a device: which kernel computes an operation. Compiled with nvcc -x cu -std=c++20 --expt-relaxed-constexpr, linked with cublasLt.
#pragma once
#include <parallel/device/cuda/attention.hpp>
#include <parallel/device/cuda/attention_gradient.hpp>
#include <parallel/device/cuda/device.hpp>
#include <parallel/device/cuda/elementwise.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/cast.hpp>
#include <parallel/operation/multiply.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/unary.hpp>

namespace parallel::cuda {

// clang-format off
template <class T>
std::span<const KernelRow> Table<T>::kernels() {
  if constexpr (std::is_same_v<T, int>) {  // whole numbers are moved and chosen
    static constexpr KernelRow all[]{
      {&operation::add,                         binary<int, Add>},
      {&operation::subtract,                    binary<int, Subtract>},
      {&operation::multiply,                    binary<int, Multiply>},
      {&operation::copy,                        copy},
      {&operation::reshape,                     copy},
    };
    return all;
  } else if constexpr (std::is_same_v<T, Scalars>) {  // what the optimizer decides by: doubles, whatever the type of the gradients
    return {};
  } else {
    static constexpr KernelRow all[]{
      // operation                              kernel                          operand of whole numbers: indices, a mask
      {&operation::add,                         binary<T, Add>},
      {&operation::subtract,                    binary<T, Subtract>},
      {&operation::multiply,                    binary<T, Multiply>},
      {&operation::divide,                      binary<T, Divide>},
      {&operation::relu,                        unary<T, Relu>},
      {&operation::relu_derivative,             binary<T, ReluDerivative>},

      {&operation::attention,                   attention<T>},
      {&operation::attention_derivative,        attention_gradient<T>},

      {&operation::copy,                        copy},
      {&operation::reshape,                     copy},
    };
    return all;
  }
}
// clang-format on

}  // namespace parallel::cuda
