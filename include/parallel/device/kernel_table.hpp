// Which kernel computes an operation: rows of a table per element type of the result.
#pragma once
#include <span>

#include <parallel/device/kernel.hpp>

namespace parallel::internals {

/// The kernel of one operation for one element type.
struct KernelRow {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;
  int whole_numbers = -1;  ///< the operand that must be i32: indices or a mask
  bool mixed = false;      ///< it takes bf16 or f16 beside f32
  bool states = false;     ///< what it updates behind its first result may be bf16 beside f32
};
/// The kernel of calls of these operations one behind the other; of a single one, of any number of its calls; of none,
/// of operations that go element by element.
struct FusedRow {
  List<const Operation*, longest_fusion> operations{};
  FusedKernel kernel{};
};

/// Kernels of a program's own operation, each for calls whose first result has this element type, whatever the operands
/// have; nullptr where there is none.
struct OwnKernels {
  const Operation* operation = nullptr;
  Kernel f32 = nullptr, f64 = nullptr, i32 = nullptr, bf16 = nullptr, f16 = nullptr;

  constexpr Kernel of(DType dtype) const {
    switch (dtype) {
      case DType::f32: return f32;
      case DType::f64: return f64;
      case DType::bf16: return bf16;
      case DType::f16: return f16;
      default: return i32;
    }
  }
};

/// Whether a call has operands and results of bf16 or f16 beside others of f32: a kernel has to be made for that.
/// `but_states`: what is updated behind the first does not count.
constexpr bool mixes_halves(const Call& call, bool but_states = false) {
  bool half = false, single = false;
  const int states = but_states ? call.results.size() - 1 : 0;
  const auto look = [&](const View& v) {
    half = half || is_half(v.dtype);
    single = single || v.dtype == DType::f32;
  };
  for (int o = 0; o < call.operands.size(); ++o)
    if (o == 0 || o > states) look(call.operands[o]);
  for (int r = 0; r < call.results.size(); ++r)
    if (r == 0 || r > states) look(call.results[r]);
  return half && single;
}

/// The kernel of a table for a call, or nullptr.
constexpr Kernel find_kernel(std::span<const KernelRow> table, const Operation& operation, const Call& call) {
  for (const KernelRow& row : table)
    if (row.operation == &operation && (row.whole_numbers < 0 || call.operands[row.whole_numbers].dtype == DType::i32))
      return row.mixed || !mixes_halves(call, row.states) ? row.kernel : nullptr;
  return nullptr;
}
/// The same for calls that follow each other.
inline FusedKernel find_kernel(std::span<const FusedRow> table, std::span<const Call> calls) {
  for (const FusedRow& row : table) {
    const auto n = static_cast<std::size_t>(row.operations.size());
    bool same = n == 0 ? calls.size() > 1 : n == 1 || n == calls.size();
    for (std::size_t i = 0; same && i < calls.size(); ++i)
      same = n == 0 ? calls[i].operation->element_by_element != 0
                    : calls[i].operation == row.operations[static_cast<int>(n == 1 ? 0 : i)];
    if (same) return row.kernel;
  }
  return {};
}

/// The kernel for a call of an operation on a device whose tables are Table<element type of the result>, for programs
/// of these types; or nullptr. Whole numbers and what is of Scalars are in every program.
template <template <class> class Table, class Scalars, class... T>
Kernel find_kernel(const Operation& operation, const Call& call) {
  Kernel found = nullptr;
  const auto look = [&](DType dtype, std::span<const KernelRow> table) {
    if (found == nullptr && dtype == call.results[0].dtype) found = find_kernel(table, operation, call);
  };
  (look(dtype_of<T>, Table<T>::kernels()), ...);
  look(DType::i32, Table<int>::kernels());
  look(DType::f64, Table<Scalars>::kernels());
  return found;
}
/// The same for calls that follow each other.
template <template <class> class Table, class Scalars, class... T>
FusedKernel find_kernel(std::span<const Call> calls) {
  FusedKernel found{};
  const auto look = [&](DType dtype, std::span<const FusedRow> table) {
    if (!found && dtype == calls[0].results[0].dtype) found = find_kernel(table, calls);
  };
  (look(dtype_of<T>, Table<T>::fused()), ...);
  look(DType::f64, Table<Scalars>::fused());
  return found;
}

/// Whether a program has a kernel of its own for one of some calls.
inline bool has_own(std::span<const OwnKernels> own, std::span<const Call> calls) {
  for (const OwnKernels& row : own)
    for (const Call& call : calls)
      if (row.operation == call.operation && row.of(call.results[0].dtype) != nullptr) return true;
  return false;
}

}  // namespace parallel::internals
