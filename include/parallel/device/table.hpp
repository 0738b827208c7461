// Which kernel computes an operation: rows of a table per element type of the result.
#pragma once
#include <span>

#include <parallel/device/kernel.hpp>

namespace parallel {

/// The kernel of one operation for one element type.
struct KernelRow {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;
  int whole_numbers = -1;  ///< the operand that must be i32: indices or a mask
  bool mixed = false;      ///< it takes bf16 beside f32
  Together together{};     ///< what computes several calls
};

/// Kernels of a program's own operation; nullptr where there is none for an element type.
struct OwnKernels {
  const Operation* operation = nullptr;
  Kernel f32 = nullptr, f64 = nullptr, i32 = nullptr, bf16 = nullptr;

  constexpr Kernel of(DType dtype) const {
    return dtype == DType::f32 ? f32 : dtype == DType::f64 ? f64 : dtype == DType::i32 ? i32 : bf16;
  }
};

/// Whether a call has operands and results of bf16 beside others of f32: a kernel has to be made for that.
constexpr bool mixes_bf16(const Call& call) {
  bool half = false, single = false;
  const auto look = [&](const View& v) {
    half = half || v.dtype == DType::bf16;
    single = single || v.dtype == DType::f32;
  };
  for (const View& v : call.operands) look(v);
  for (const View& v : call.results) look(v);
  return half && single;
}

/// The kernel of a table for a call, which is told what computes it together with others, or nullptr.
constexpr Kernel find_kernel(std::span<const KernelRow> table, const Operation& operation, Call& call) {
  for (const KernelRow& row : table)
    if (row.operation == &operation &&
        (row.whole_numbers < 0 || call.operands[row.whole_numbers].dtype == DType::i32)) {
      if (!row.mixed && mixes_bf16(call)) return nullptr;
      call.together = row.together;
      return row.kernel;
    }
  return nullptr;
}

}  // namespace parallel
