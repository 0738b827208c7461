// The CPU as a device, without its kernels: a file that includes only this compiles quickly, and is linked with one
// that includes <parallel/device/cpu.hpp> and says `template struct parallel::internals::cpu::Table<float>;`.
#pragma once
#include <parallel/device/cpu/in_float.hpp>
#include <parallel/device/cpu/packed.hpp>
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/scratch.hpp>
#include <parallel/device/cpu/team.hpp>
#include <parallel/device/device.hpp>
#include <parallel/device/host_memory.hpp>
#include <parallel/device/kernel_table.hpp>
#include <parallel/meta/product_library.hpp>

namespace parallel::internals {

using CpuKernels = OwnKernels;

namespace cpu {
struct Scalars;
/// The kernels of the library's own operations whose result has elements of type T. Templates, so that only files that
/// include them, or say so, compile them.
template <class T>
struct PARALLEL_SHARED Table {
  static std::span<const KernelRow> kernels();
  static std::span<const KernelRow> of_bf16();  ///< of bf16 itself, which need not be widened to float
  static std::span<const FusedRow> fused();
};
}  // namespace cpu

/// The CPU, with kernels for programs of these element types; what is bf16 or f16 the kernels for float compute, but
/// products of bf16 by oneDNN. `own` has kernels of a program's own operations, or others for the library's; it must
/// outlive what the device is given to. An operation that is fused with others is run alone where it has one there.
///
///     constexpr CpuKernels mine[]{{&swish, swish_kernel<float>, swish_kernel<double>}};
///     Executor<Threads, Cpu> executor(plan, world, parameters, Cpu{mine});
template <class... T>
struct CpuOf {
  std::span<const CpuKernels> own{};
  static constexpr int most_threads = 1024;  ///< of a rank
  int threads = 1;                    ///< that compute a rank's operations together: its share of the machine's cores
  std::shared_ptr<cpu::Team> team{};  ///< they, of an executor's device
  /// Whether weights that a step multiplies by several times, for micro-batches or steps of a Scan, are packed once: in
  /// memory beside the plan's, packed_weights(plan) bytes.
  bool packs_once = false;
  std::shared_ptr<cpu::PackedWeights> packed{};  ///< they, of an executor's device

  /// For an executor: begins its threads, which all executors of the calling thread share, each with what a plan's
  /// kernels work in. Throws Failure where they are none, more than `most_threads`, or more than the system gives.
  void make_ready(const account::Scratch& scratch) {
    if (threads < 1 || threads > most_threads)
      throw Failure(
          "a Cpu has " + std::to_string(threads) + " threads; give it from 1 to " + std::to_string(most_threads),
          exit_code::configuration);
    team = cpu::team_of(threads);
    cpu::each_unit(team.get(), threads, [&](std::int64_t) { cpu::reserve(scratch); });
  }
  /// Whether an executor says which weights a step multiplies by several times (plan/packed_once.hpp), and when one
  /// begins.
  bool keeps_packed() const { return packs_once && product_library() == "Eigen"; }
  /// For an executor that then says which: packed_weights(plan) bytes for them.
  void make_room(std::int64_t packed_weights) { packed = std::make_shared<cpu::PackedWeights>(packed_weights); }
  void begin_step() const {
    if (packed != nullptr) packed->begin_step();
  }
  /// Has a product keep its right operand packed, as the weight of this number, which has so many slots at a distance
  /// of so many bytes.
  void keep_packed(Call& call, int number, std::int64_t slots, std::int64_t stride, std::int64_t bytes) const {
    if (packed != nullptr) call.packed = packed->at(number, call.operands[1].data, slots, stride, bytes);
  }
  /// Computes a launch by all of them, where it can be shared out; products and attention see to it themselves.
  void compute(const Launch& launch) const { team == nullptr ? launch.run() : cpu::compute(*team, launch); }

  /// The kernel for a call of an operation, or nullptr.
  Kernel kernel(const Operation& operation, Call& call) const {
    if (const Kernel mine = own_kernel(operation, call)) return mine;
    if (!has_half(call)) {
      call.context = team.get();
      return find_kernel<cpu::Table, cpu::Scalars, T...>(operation, call);
    }
    Call wide = cpu::with_float(call);
    if (of_bf16(call) && own_kernel(operation, wide) == nullptr)
      if (const Kernel found = find_kernel(cpu::Table<float>::of_bf16(), operation, call)) return found;
    call.context = reinterpret_cast<void*>(kernel(operation, wide));
    return call.context != nullptr ? cpu::in_float : nullptr;
  }
  /// The program's own, or nullptr.
  Kernel own_kernel(const Operation& operation, const Call& call) const {
    const DType wanted = call.results[0].dtype;
    for (const CpuKernels& row : own) {
      if (row.of(wanted) == nullptr || (!is_half(wanted) && has_half(call))) continue;
      if (row.operation == &operation) return row.of(wanted);
    }
    return nullptr;
  }

  /// One kernel for calls that follow each other, or none. In halves each rounds its result.
  FusedKernel fused(std::span<Call> calls) const {
    if (has_own(own, calls) || std::any_of(calls.begin(), calls.end(), has_half)) return {};
    const FusedKernel found = find_kernel<cpu::Table, cpu::Scalars, T...>(calls);
    for (Call& call : calls)
      if (found) call.kernel = kernel(*call.operation, call);
    return found;
  }

  /// Whether what is computed with is bf16 alone, and the result is that, too, or f32.
  static bool of_bf16(const Call& call) {
    bool all = call.results[0].dtype == DType::bf16 || call.results[0].dtype == DType::f32;
    for (const View& v : call.operands) all = all && v.dtype == DType::bf16;
    return all;
  }
  static bool has_half(Call call) {
    bool any = false;
    cpu::each_half(call, [&](const View&) { any = true; });
    return any;
  }

  static constexpr const DeviceAccount& account = account::on_cpu;
  static constexpr bool asynchronous = false;
  static void prepare(Call&) {}
  static HostMemory memory(std::int64_t bytes) { return HostMemory(bytes); }
  static HostMemory mirrored(std::int64_t bytes) { return HostMemory(bytes); }

  static void copy(const Call& call) { cpu::copy(call.results[0], call.operands[0]); }
  static void zero(const Call& call) { cpu::zero(call.results[0]); }
  static void copy_overlap(const Call& call) { cpu::copy_overlap(call.operands[0], call.results[0]); }
  static void pack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) {
    cpu::pack(from, to, outer, n, inner, bytes);
  }
  static void unpack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) {
    cpu::unpack(from, to, outer, n, inner, bytes);
  }
  static void take(const View& from, const View& to) { cpu::copy_overlap(from, to); }
  static void read(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  static void finish() {}
};

/// The CPU for programs in float, as most are; a program in double pays for its kernels with compile time.
using Cpu = CpuOf<float>;
using CpuDouble = CpuOf<float, double>;
static_assert(Device<Cpu>);

}  // namespace parallel::internals

namespace parallel {
using internals::Cpu;
using internals::CpuDouble;
using internals::CpuKernels;
using internals::CpuOf;
}  // namespace parallel
