// The CPU's kernels.
#pragma once
#include <parallel/device/cpu/adafactor.hpp>
#include <parallel/device/cpu/along.hpp>
#include <parallel/device/cpu/attention.hpp>
#include <parallel/device/cpu/batch_norm.hpp>
#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/convolution.hpp>
#include <parallel/device/cpu/cross_entropy.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/embedding.hpp>
#include <parallel/device/cpu/fused.hpp>
#include <parallel/device/cpu/gather.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/movement.hpp>
#include <parallel/device/cpu/muon.hpp>
#include <parallel/device/cpu/norm.hpp>
#include <parallel/device/cpu/optimizer.hpp>
#include <parallel/device/cpu/pool.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/cpu/reduce.hpp>
#include <parallel/device/cpu/rotary.hpp>
#include <parallel/device/cpu/sample.hpp>
#include <parallel/device/cpu/softmax.hpp>
#include <parallel/device/cpu/source.hpp>
#include <parallel/operation/operations.hpp>

namespace parallel::internals::cpu {

#include <parallel/device/kernel_table.ipp>

template <class T>
std::span<const KernelRow> Table<T>::of_bf16() {
  static constexpr KernelRow all[]{{&operation::matmul, matmul_bf16, -1, true}};
  return std::span<const KernelRow>(all).first(std::is_same_v<T, float> && multiplies_bf16() ? 1 : 0);
}

// clang-format off
template <class T>
std::span<const FusedRow> Table<T>::fused() {
  if constexpr (std::is_floating_point_v<T>) {
    static constexpr FusedRow all[]{
      {{&operation::matmul, &operation::add},   {matmul_add<T>}},
      {{},                                      {in_pieces}},
    };
    return all;
  } else {
    return {};
  }
}
// clang-format on

}  // namespace parallel::internals::cpu
