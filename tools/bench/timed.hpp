// A device and a communicator around others, which note how long each kernel and each collective takes on a rank.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <parallel/communicator/communicator.hpp>
#include <parallel/device/kernel.hpp>
#include <parallel/operation/matmul.hpp>

namespace bench {

using namespace parallel;
using namespace parallel::internals;

/// What the calls of one name took on the rank that asks.
struct Cost {
  std::string name;
  double flops = 0;  ///< of products
  double seconds = 0;
  long calls = 0;
};

/// The names, shared by all ranks, and each rank's own counts.
class Costs {
 public:
  static constexpr int most = 512;

  /// The number of a name; the same for all ranks.
  static int slot(const std::string& name, Kernel kernel = nullptr, double flops = 0, FusedKernel fused = {}) {
    const std::lock_guard guard(mutex_);
    for (int i = 0; i < static_cast<int>(names_.size()); ++i)
      if (names_[index(i)].name == name && kernels_[index(i)] == kernel && fused_[index(i)].compute == fused.compute)
        return i;
    if (names_.size() == most) throw Failure("bench: more operations than Costs::most");
    kernels_[names_.size()] = kernel;
    fused_[names_.size()] = fused;
    names_.push_back({name, flops});
    return static_cast<int>(names_.size()) - 1;
  }
  template <class F>
  static void time(int slot, F f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    own_[index(slot)].first += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++own_[index(slot)].second;
  }
  static Kernel kernel(int slot) { return kernels_[index(slot)]; }
  static FusedKernel fused(int slot) { return fused_[index(slot)]; }

  /// Forgets all names; nothing is being timed.
  static void forget() { names_.clear(); }
  /// Forgets what this thread's rank has spent.
  static void clear() { own_ = {}; }
  /// What this thread's rank has spent since `clear`, the dearest first.
  static std::vector<Cost> costs() {
    std::vector<Cost> result;
    for (int i = 0; i < static_cast<int>(names_.size()); ++i)
      if (const auto [seconds, calls] = own_[index(i)]; calls > 0)
        result.push_back({names_[index(i)].name, names_[index(i)].flops * static_cast<double>(calls), seconds, calls});
    std::sort(result.begin(), result.end(), [](const Cost& a, const Cost& b) { return a.seconds > b.seconds; });
    return result;
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static inline std::mutex mutex_;
  static inline std::vector<Cost> names_;
  static inline std::array<Kernel, most> kernels_{};
  static inline std::array<FusedKernel, most> fused_{};
  static inline thread_local std::array<std::pair<double, long>, most> own_{};
};

/// A kernel is a plain function pointer, so every slot has a function of its own.
template <int slot>
void timed_kernel(const Call& call) {
  Costs::time(slot, [&] { Costs::kernel(slot)(call); });
}
template <int slot>
void timed_fused(std::span<const Call> calls) {
  Costs::time(slot, [&] { Costs::fused(slot).compute(calls); });
}
struct TimedKernels {
  Kernel alone;
  decltype(FusedKernel::compute) fused;
};
inline TimedKernels timed(int slot) {
  static constexpr auto all = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<TimedKernels, sizeof...(i)>{TimedKernels{timed_kernel<i>, timed_fused<i>}...};
  }
  (std::make_integer_sequence<int, Costs::most>{});
  return all[static_cast<std::size_t>(slot)];
}

/// Its kernels are `Device`'s, timed by operation; products also by their sizes and by which operand lies transposed.
template <class Device>
struct Timed : Device {
  Kernel kernel(const Operation& operation, Call& call) const {
    const Kernel found = Device::kernel(operation, call);
    if (found == nullptr) return nullptr;
    const auto [name, flops] = what(operation, call);
    return timed(Costs::slot(name, found, flops)).alone;
  }
  FusedKernel fused(std::span<Call> calls) const {
    FusedKernel found = Device::fused(calls);
    if (!found) return {};
    auto [name, flops] = what(*calls[0].operation, calls[0]);
    std::string operations(calls[0].operation->name);
    const std::string sizes = name.substr(operations.size());
    for (const Call& call : calls.subspan(1)) operations += "+" + std::string(call.operation->name);
    found.compute = timed(Costs::slot(operations + sizes, nullptr, flops, found)).fused;
    return found;
  }

 private:
  static std::pair<std::string, double> what(const Operation& operation, const Call& call) {
    std::string name(operation.name);
    if (&operation != &operation::matmul) return {name, 0.0};
    const operation::Product p(call.ints);
    const View &x = call.operands[0], &y = call.results[0];
    const std::int64_t free = x.rank - p.batch - p.contracted;
    const std::int64_t m = y.extent(p.batch, p.batch + static_cast<int>(free)),
                       n = y.extent(p.batch + static_cast<int>(free), y.rank);
    const std::int64_t k = x.elements() / m;
    name += " " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
            (p.left_transposed ? ", left transposed" : "") + (p.right_transposed ? ", right transposed" : "");
    return {name, 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  }
};

/// Its collectives are `World`'s, timed: waiting for the other ranks apart from the exchange itself. Records nothing
/// else.
template <Communicator World>
class TimedWorld {
 public:
  explicit TimedWorld(World world) : world_(std::move(world)), others_(Costs::slot("waiting for other ranks")) {}
  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }
  TimedWorld split(int color, int key) { return TimedWorld(world_.split(color, key)); }
  Ticket start(const Exchange& e) {
    Ticket ticket;
    const int slot = Costs::slot(std::string(name_of(e.kind)));
    slots_[started_++ % max_outstanding] = slot;
    Costs::time(slot, [&] { ticket = world_.start(e); });
    return ticket;
  }
  void wait(Ticket t) {
    Costs::time(others_, [&] { world_.barrier(); });
    Costs::time(slots_[t.number % max_outstanding], [&] { world_.wait(t); });
  }
  void barrier() { world_.barrier(); }
  void aside(const Exchange& e) { world_.aside(e); }
  void record(std::vector<Record>* records) { world_.record(records); }
  void deadline(std::chrono::milliseconds limit) { world_.deadline(limit); }
  LongPhase within(const LongPhase& now) { return world_.within(now); }

 private:
  World world_;
  int others_;
  std::uint64_t started_ = 0;
  int slots_[max_outstanding]{};
};

}  // namespace bench
