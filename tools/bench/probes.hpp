// Work that several ranks time by turns, round by round, and of which only rounds count in which the ranks had their
// cores.
#pragma once
#include <functional>
#include <map>
#include <mutex>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/host_memory.hpp>
#include <parallel/device/kernel.hpp>

#include "measure.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;

/// A call of a kernel on memory of its own, which it names by extents.
class KernelRun {
 public:
  using Extents = std::vector<std::int64_t>;
  using Tensors = std::vector<Extents>;
  KernelRun(Kernel kernel, DType dtype, const Tensors& operands, const Tensors& results, const Ints& ints = {},
            double number = 0)
      : KernelRun(dtype, operands, results, ints, number) {
    kernel_ = kernel;
  }
  /// The kernel that a device has for it.
  template <class Device>
  KernelRun(const Device& device, const Operation& operation, DType dtype, const Tensors& operands,
            const Tensors& results, const Ints& ints)
      : KernelRun(dtype, operands, results, ints, 0) {
    kernel_ = device.kernel(operation, call_);
  }
  void operator()() const { kernel_(call_); }

 private:
  KernelRun(DType dtype, const Tensors& operands, const Tensors& results, const Ints& ints, double number) {
    for (const Extents& extents : operands) call_.operands.push_back(view(dtype, extents));
    for (const Extents& extents : results) call_.results.push_back(view(dtype, extents));
    call_.ints = ints;
    call_.reals[0] = number;
  }
  View view(DType dtype, const Extents& extents) {
    View v;
    v.dtype = dtype;
    for (const std::int64_t n : extents) {
      v.size[v.rank] = v.whole[v.rank] = n;
      ++v.rank;
    }
    memory_.emplace_back(v.elements() * bytes_of(dtype));
    v.data = memory_.back().data();
    for (std::int64_t i = 0; i < v.elements(); ++i) {  // small numbers, as of activations
      const double x = 0.01 * static_cast<double>(i % 101 - 50);
      if (dtype == DType::f64)
        v.as<double>()[i] = x;
      else if (dtype == DType::bf16)
        v.as<bfloat16>()[i] = bfloat16(static_cast<float>(x));
      else if (dtype == DType::f16)
        v.as<float16>()[i] = float16(static_cast<float>(x));
      else
        v.as<float>()[i] = static_cast<float>(x);
    }
    return v;
  }
  std::vector<HostMemory> memory_{};
  Call call_{};
  Kernel kernel_ = nullptr;
};

/// Something that every rank of a world times round by round, and what it does in one run.
struct Probe {
  std::string name;
  double work;  ///< FLOP, elements or bytes, as `name` has it
  std::function<void(Threads&)> run;
  bool together = false;  ///< the ranks wait for each other in it
  double least = 1e-3;    ///< seconds that a timing takes at least
};

/// Seconds of one run of each probe, of ranks that were left alone: the median over ranks and rounds. `rounds` go
/// through all probes by turns, so that what else the machine does falls on all of them. A timing in which the rank, or
/// where ranks wait for each other all together, had to wait for a core for more than a fiftieth of the time counts
/// only where there are fewer than three others; then the best three do.
class Probes {
 public:
  Probes(int ranks, int rounds) : ranks_(ranks), rounds_(rounds) {}
  /// `make(world)` gives a rank its probes, the same for all.
  template <class Make>
  void run(Make make) {
    run_threads(ranks_, [&](Threads& world) {
      std::vector<Probe> probes = make(world);
      std::vector<int> times;
      for (Probe& probe : probes) {  // the first run warms up; then all ranks agree how often to repeat
        probe.run(world);
        world.barrier();
        const double once = seconds([&] { probe.run(world); });
        const std::lock_guard guard(mutex_);
        longest_[probe.name] = std::max(longest_[probe.name], once);
      }
      world.barrier();
      for (const Probe& probe : probes) times.push_back(static_cast<int>(probe.least / longest_[probe.name]) + 1);
      for (int round = 0; round < rounds_; ++round)
        for (std::size_t i = 0; i < probes.size(); ++i) {
          world.barrier();
          const double waited = waited_for_a_core();
          const double all = seconds([&] {
            for (int t = 0; t < times[i]; ++t) probes[i].run(world);
          });
          const double disturbed = (waited_for_a_core() - waited) / all;
          const std::lock_guard guard(mutex_);
          Timings& timings = timings_[probes[i].name];
          timings.work = probes[i].work;
          const int group = probes[i].together ? round : round * ranks_ + world.rank();
          timings.groups[group].seconds.push_back(all / times[i]);
          timings.groups[group].disturbed += disturbed;
        }
    });
    for (auto& [name, timings] : timings_) timings.choose();
  }
  const std::vector<double>& times(const std::string& name) const { return timings_.at(name).chosen; }
  double median(const std::string& name) const { return spread(times(name)).median; }
  /// The share of the time in which ranks waited for a core, added over ranks, in the worst timing that counts.
  double disturbed(const std::string& name) const { return timings_.at(name).disturbed; }
  /// Work over seconds of all probes whose names begin so, together.
  double rate(const std::string& prefix) const {
    double work = 0, time = 0;
    for (const auto& [name, timings] : timings_)
      if (name.starts_with(prefix)) {
        work += timings.work;
        time += median(name);
      }
    return work / time;
  }

 private:
  /// What counts or does not count as a whole.
  struct Group {
    std::vector<double> seconds{};
    double disturbed = 0;  ///< shares of the time, added over ranks: as they wait for each other, so much may be lost
  };
  struct Timings {
    double work = 0, disturbed = 0;
    std::map<int, Group> groups{};
    std::vector<double> chosen{};
    void choose() {
      std::vector<const Group*> best;
      for (const auto& [number, group] : groups) best.push_back(&group);
      std::sort(best.begin(), best.end(), [](const Group* a, const Group* b) { return a->disturbed < b->disturbed; });
      for (std::size_t i = 0; i < best.size() && (i < 3 || best[i]->disturbed < 0.02); ++i) {
        chosen.insert(chosen.end(), best[i]->seconds.begin(), best[i]->seconds.end());
        disturbed = best[i]->disturbed;
      }
    }
  };

  int ranks_, rounds_;
  std::mutex mutex_{};
  std::map<std::string, double> longest_{};
  std::map<std::string, Timings> timings_{};
};

}  // namespace bench
