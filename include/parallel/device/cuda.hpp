// A GPU as a device, with its kernels. Compiled with nvcc -x cu -std=c++20 --expt-relaxed-constexpr,
// linked with cublasLt.
#pragma once
#include <parallel/device/cuda/device.hpp>
#include <parallel/device/cuda/operation/adafactor.hpp>
#include <parallel/device/cuda/operation/along.hpp>
#include <parallel/device/cuda/operation/attention.hpp>
#include <parallel/device/cuda/operation/attention_gradient.hpp>
#include <parallel/device/cuda/operation/batch_norm.hpp>
#include <parallel/device/cuda/operation/convolution.hpp>
#include <parallel/device/cuda/operation/cross_entropy.hpp>
#include <parallel/device/cuda/operation/elementwise.hpp>
#include <parallel/device/cuda/operation/embedding.hpp>
#include <parallel/device/cuda/operation/gather.hpp>
#include <parallel/device/cuda/operation/gradient_norm.hpp>
#include <parallel/device/cuda/operation/movement.hpp>
#include <parallel/device/cuda/operation/muon.hpp>
#include <parallel/device/cuda/operation/norm_rows.hpp>
#include <parallel/device/cuda/operation/optimizer.hpp>
#include <parallel/device/cuda/operation/pool.hpp>
#include <parallel/device/cuda/operation/random.hpp>
#include <parallel/device/cuda/operation/reduce.hpp>
#include <parallel/device/cuda/operation/rotary.hpp>
#include <parallel/device/cuda/operation/sample.hpp>
#include <parallel/device/cuda/operation/softmax.hpp>
#include <parallel/device/cuda/operation/source.hpp>
#include <parallel/operation/operations.hpp>

namespace parallel::internals::cuda {

#include <parallel/device/kernel_table.ipp>

// clang-format off
template <class T>
std::span<const FusedRow> Table<T>::fused() {  // but products: product_kernel
  if constexpr (std::is_same_v<T, int>) {
    return {};
  } else if constexpr (std::is_same_v<T, Scalars>) {
    static constexpr FusedRow all[]{
      {{&operation::square_sum},                {square_sums}},
      {{&operation::add_scalars},               {add_scalars, true}},
    };
    return all;
  } else {
    static constexpr FusedRow all[]{
      {{&operation::sgd},                       {sgd<T>}},
      {{&operation::momentum},                  {momentum<T>}},
      {{&operation::nesterov},                  {nesterov<T>}},
      {{&operation::adam},                      {adam<T>}},
      {{&operation::adamw},                     {adamw<T>}},
      {{&operation::lion},                      {lion<T>}},
      {{&operation::average},                   {average<T>}},
      {{&operation::handed_down},               {handed_down<T>}},
    };
    return all;
  }
}
// clang-format on

}  // namespace parallel::internals::cuda

/// Said in one file of a program: compiles the kernels there, for files that include device/cuda/device.hpp only.
#define PARALLEL_CUDA_KERNELS                                           \
  template struct parallel::internals::cuda::Table<int>;                \
  template struct parallel::internals::cuda::Table<float>;              \
  template struct parallel::internals::cuda::Table<double>;             \
  template struct parallel::internals::cuda::Table<parallel::bfloat16>; \
  template struct parallel::internals::cuda::Table<parallel::float16>;  \
  template struct parallel::internals::cuda::Table<parallel::internals::cuda::Scalars>
