// Which kernel computes an operation: rows of a table per element type of the result.
#pragma once
#include <parallel/device/kernel.hpp>
#include <span>

namespace parallel {

/// The kernel of one operation for one element type.
struct KernelRow {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;
  int whole_numbers = -1;  ///< the operand that must be i32: indices or a mask
};

/// Kernels of a program's own operation; nullptr where there is none for an element type.
struct OwnKernels {
  const Operation* operation = nullptr;
  Kernel f32 = nullptr, f64 = nullptr, i32 = nullptr, bf16 = nullptr;

  constexpr Kernel of(DType dtype) const { return dtype == DType::f32 ? f32 : dtype == DType::f64 ? f64 : dtype == DType::i32 ? i32 : bf16; }
};

/// The kernel of a table for a call, or nullptr. Operands of bf16 are for kernels that make bf16, and for those that `read_bf16`.
constexpr Kernel find_kernel(std::span<const KernelRow> table, const Operation& operation, const Call& call, bool reads_bf16) {
  for (const View& operand : call.operands)
    if (operand.dtype == DType::bf16 && !reads_bf16) return nullptr;
  for (const KernelRow& row : table)
    if (row.operation == &operation && (row.whole_numbers < 0 || call.operands[row.whole_numbers].dtype == DType::i32)) return row.kernel;
  return nullptr;
}

}  // namespace parallel
