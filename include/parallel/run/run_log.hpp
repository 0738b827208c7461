// The numbers of a run, step by step, kept in a folder for a page that draws them while it goes on, and for
// TensorBoard.
#pragma once
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/file/event_file.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// What a log says of its run.
struct LoggedRun {
  std::int64_t from = 0;                       ///< the step that the run begins or goes on with
  double per_step = 0;                         ///< how much a step takes in, over all ranks: its throughput is known
  std::string unit = "samples";                ///< of what
  std::map<std::string, std::string> notes{};  ///< what tells this run from others
  bool tensorboard = false;                    ///< also as event files of TensorBoard
};

/// What has a loss and the norm of its gradients, as StepResult.
template <class R>
concept Stepped = requires(const R& result) {
  { result.loss } -> std::convertible_to<double>;
  { result.gradient_norm } -> std::convertible_to<double>;
};

/// The log of a run in a folder RUNS/NAME, which the first rank writes: RUNS/runs.html shows all runs of RUNS. A step
/// is a line, which is with the system when `step` returns. What cannot be written later, as on a full disk, is said
/// once on the standard error, and the training goes on.
class RunLog {
 public:
  /// Called by all ranks together. `folder` empty: nothing is logged. What an earlier run logged in this folder of step
  /// `run.from` and later ones is cut. Throws Failure(io) where the folder cannot be written, or another program logs
  /// there, Failure(usage) where the name is no RUNS/NAME, Misuse for a step or throughput below 0.
  template <Communicator World>
  RunLog(World& world, const std::string& folder, const Plan& plan, LoggedRun run = {}, Here here = {}) {
    if (world.size() > 1) agree(world, {always(fact("folder of a log", folder))}, "a log", here);
    if (folder.empty()) return;
    // how many of the ranks are threads of this process, whose memory is one
    static std::atomic<int> threads = 0;
    ++threads;
    world.barrier();
    const int ranks = threads;
    world.barrier();
    --threads;
    if (world.rank() == 0) begin(folder, plan, ranks, std::move(run));
  }
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// Numbers of step `step`, counted from 0, under names of your own; there may be several calls for a step. Beside
  /// them stand the time, the memory of this process and, of the first call for a step, seconds since the call before,
  /// and throughput. Throws Misuse for a step before that of the call before, a name that is empty, twice in a call or
  /// one of these.
  void step(std::int64_t step, std::initializer_list<LoggedNumber> numbers) {
    if (begun_) write(step, {numbers.begin(), numbers.end()});
  }
  /// The same of what a Trainer returns: its loss and gradient norm, and more.
  template <Stepped Result>
  void step(std::int64_t step, const Result& result, std::initializer_list<LoggedNumber> more = {}) {
    if (!begun_) return;
    std::vector<LoggedNumber> all{{"loss", static_cast<double>(result.loss)},
                                  {"gradient_norm", static_cast<double>(result.gradient_norm)}};
    all.insert(all.end(), more.begin(), more.end());
    write(step, std::move(all));
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// An open folder, locked while it is.
  struct Lock {
    int folder = -1;
    ~Lock() {
      if (folder >= 0) ::close(folder);
    }
  };
  /// Rows lie in files of so many, so that a page reads again only the last.
  static constexpr int rows_of_file = 2000;

  void begin(const std::string& folder, const Plan& plan, int ranks, LoggedRun run);
  void check(std::int64_t step, const std::vector<LoggedNumber>& numbers, const std::string& throughput) const;
  void write(std::int64_t step, std::vector<LoggedNumber> numbers);
  void cut();
  void append(std::string_view line);
  void warn();
  std::string rows(int file) const;

  bool begun_ = false, warned_ = false;
  std::string folder_{};
  LoggedRun run_{};
  Lock lock_{};
  std::optional<AppendedFile> file_{};
  int files_ = 0, rows_ = 0;
  std::optional<EventFile> events_{};
  std::optional<std::int64_t> last_{};
  Clock::time_point at_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::LoggedRun;
using internals::RunLog;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/run_log.ipp>
#endif
