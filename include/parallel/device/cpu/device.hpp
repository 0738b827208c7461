// The CPU as a device, without its kernels: a file that includes only this compiles quickly, and is linked with one that includes
// <parallel/device/cpu.hpp> and says `template struct parallel::cpu::Table<>;`.
#pragma once
#include <parallel/device/cpu/parts.hpp>
#include <span>

namespace parallel {

/// The kernels of one operation, by the element type of its first result; nullptr where there is none.
struct CpuKernels {
  const Operation* operation = nullptr;
  Kernel f32 = nullptr, f64 = nullptr, i32 = nullptr;
  int whole_numbers = -1;  ///< the operand that must be i32: indices or a mask

  constexpr Kernel of(const Call& call) const {
    if (whole_numbers >= 0 && call.operands[whole_numbers].dtype != DType::i32) return nullptr;
    for (const View& operand : call.operands)
      if (operand.dtype == DType::bf16) return nullptr;
    switch (call.results[0].dtype) {
      case DType::f32: return f32;
      case DType::f64: return f64;
      case DType::i32: return i32;
      default: return nullptr;
    }
  }
};

namespace cpu {
/// The kernels of the library's own operations. A template, so that only files that include them, or say so, compile them.
template <class = void>
struct Table {
  static std::span<const CpuKernels> kernels();
};
}  // namespace cpu

/// The CPU. `own` has kernels of a program's own operations, or others for the library's; it must outlive what the device is given to:
///
///     constexpr CpuKernels mine[]{{&swish, swish_kernel<float>, swish_kernel<double>}};
///     Executor<Threads, Cpu> executor(plan, world, parameters, Cpu{mine});
struct Cpu {
  std::span<const CpuKernels> own{};

  /// The kernel for a call of an operation, or nullptr.
  Kernel kernel(const Operation& operation, const Call& call) const {
    for (const std::span<const CpuKernels> table : {own, cpu::Table<>::kernels()})
      for (const CpuKernels& row : table)
        if (row.operation == &operation && row.of(call) != nullptr) return row.of(call);
    return nullptr;
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

}  // namespace parallel
