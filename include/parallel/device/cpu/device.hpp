// The CPU as a device, without its kernels: a file that includes only this compiles quickly, and is linked with one that includes
// <parallel/device/cpu.hpp> and says `template struct parallel::cpu::Table<float>;`.
#pragma once
#include <parallel/device/cpu/parts.hpp>
#include <parallel/operation/fused.hpp>
#include <span>

namespace parallel {

/// The kernel of one operation for one element type.
struct CpuKernel {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;
  int whole_numbers = -1;  ///< the operand that must be i32: indices or a mask

  constexpr bool takes(const Operation& wanted, const Call& call) const {
    if (operation != &wanted || (whole_numbers >= 0 && call.operands[whole_numbers].dtype != DType::i32)) return false;
    for (const View& operand : call.operands)
      if (operand.dtype == DType::bf16) return false;
    return true;
  }
};
/// Kernels of a program's own operation; nullptr where there is none for an element type.
struct CpuKernels {
  const Operation* operation = nullptr;
  Kernel f32 = nullptr, f64 = nullptr, i32 = nullptr;
};

namespace cpu {
struct Scalars;
/// The kernels of the library's own operations whose result has elements of type T. Templates, so that only files that include them, or say so,
/// compile them.
template <class T>
struct Table {
  static std::span<const CpuKernel> kernels();
};
}  // namespace cpu

/// The CPU, with kernels for programs of these element types. `own` has kernels of a program's own operations, or others for the library's; it
/// must outlive what the device is given to. An operation that is fused with others is run alone where it has a kernel there.
///
///
///     constexpr CpuKernels mine[]{{&swish, swish_kernel<float>, swish_kernel<double>}};
///     Executor<Threads, Cpu> executor(plan, world, parameters, Cpu{mine});
template <class... T>
struct CpuOf {
  std::span<const CpuKernels> own{};

  /// The kernel for a call of an operation, or nullptr.
  Kernel kernel(const Operation& operation, const Call& call) const {
    const DType wanted = call.results[0].dtype;
    for (const CpuKernels& row : own) {
      const Kernel own_kernel = wanted == DType::f32 ? row.f32 : wanted == DType::f64 ? row.f64 : wanted == DType::i32 ? row.i32 : nullptr;
      if (row.operation == &operation && own_kernel != nullptr) return own_kernel;
      if (own_kernel != nullptr && operation::is_part(*row.operation, operation)) return nullptr;
    }
    Kernel found = nullptr;
    const auto look = [&](DType dtype, std::span<const CpuKernel> table) {
      for (const CpuKernel& row : table)
        if (found == nullptr && dtype == wanted && row.takes(operation, call)) found = row.kernel;
    };
    (look(dtype_of<T>, cpu::Table<T>::kernels()), ...);
    look(DType::i32, cpu::Table<int>::kernels());
    look(DType::f64, cpu::Table<cpu::Scalars>::kernels());
    return found;
  }

  static void copy(const View& to, const View& from) { cpu::copy(to, from); }
  static void zero(const View& view) { cpu::zero(view); }
  /// Copies what two parts of one full tensor have in common; the rest of `to` is zero.
  static void copy_overlap(const View& from, const View& to) { cpu::copy_overlap(from, to); }
  /// [outer][n][inner] elements of `bytes` bytes to [n][outer][inner], and back.
  static void pack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) {
    cpu::pack(from, to, outer, n, inner, bytes);
  }
  static void unpack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) {
    cpu::unpack(from, to, outer, n, inner, bytes);
  }
};

/// The CPU for programs in float, as most are; a program in double pays for its kernels with compile time.
using Cpu = CpuOf<float>;
using CpuDouble = CpuOf<float, double>;

}  // namespace parallel
