// Signals that ask a run to end: noted when they come, and heard by all ranks at the same step.
#pragma once
#include <atomic>
#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>

namespace parallel::internals {

/// While it lives, these signals end the process no more: `asked` tells all ranks of them. By default those of batch
/// systems, SIGTERM, and SIGUSR1, which mpirun passes on to its processes. Made once in a process, before its ranks.
///
///     StopSignals signals;
///     run_threads(4, [&](Threads& world) {
///       for (...) { ...; if (signals.asked(world)) break; }
class StopSignals {
 public:
  explicit StopSignals(std::initializer_list<int> signals = {SIGTERM, SIGUSR1}) {
    came_ = false;
    for (const int signal : signals) {
      struct sigaction how {
      }, before{};
      how.sa_handler = [](int) { came_ = true; };
      how.sa_flags = SA_RESTART;
      sigemptyset(&how.sa_mask);
      if (::sigaction(signal, &how, &before) == 0) before_.emplace_back(signal, before);
    }
  }
  ~StopSignals() {
    for (const auto& [signal, how] : before_) ::sigaction(signal, &how, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one of them has come to any rank. Called by all ranks together; one exchange of 16 bytes.
  template <Communicator World>
  bool asked(World& world) const {
    double words[2] = {came_ ? 1.0 : 0.0, 0};
    if (world.size() > 1)
      world.aside({Collective::all_reduce, words, words, 2, DType::f64, true, 0, "whether to stop"});
    return words[0] > 0;
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);  // so that a handler may write it, and any thread read it
  inline static std::atomic<bool> came_{false};
  std::vector<std::pair<int, struct sigaction>> before_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::StopSignals;
}  // namespace parallel
