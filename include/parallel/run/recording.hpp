// What happened in the first steps of a run, event by event with times: `tools/plan --run` lays it over the plan.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <parallel/communicator/exchange.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// One event of one step on one rank. Of a collective: what the communicator was handed. Times in seconds of a clock
/// that only goes forward.
struct Happened {
  static constexpr int counter = -1;

  int step = 0;
  EventKind kind = EventKind::compute;
  int node = 0;  ///< or `counter`, before the others of a step
  Record call{};
  double begin = 0, end = 0;
};

/// Written as FILE.RANK, text of one line per event: step, event, node, collective or operation, axes, ranks, element
/// type, message bytes, begin, end. The first event of a step is `count`, of no node: the counter of steps, where there
/// are several ranks.
class Recording {
 public:
  /// `file` empty: nothing is recorded. The plan must outlive it. `steps`: how many are recorded, the first ones.
  /// The file is empty until it is written. Throws Failure(io) where it cannot be, before anything has run.
  Recording(const std::string& file, const Plan& plan, int rank, int steps = 20);
  /// Kept in memory, for a program that reads it itself.
  Recording(const Plan& plan, int rank, int steps);
  bool active() const { return steps_ > 0; }
  /// Whether all steps that are recorded have begun and ended.
  bool complete() const { return step_ >= steps_; }
  void begin_step() { ++step_; }
  const std::vector<Happened>& happened() const { return rows_; }

  /// Runs f() as an event. `call`: what is handed to the communicator.
  template <class F>
  void note(EventKind kind, int node, const Record& call, F f) {
    const double begin = now();
    f();
    if (step_ <= steps_ && rows_.size() < rows_.capacity()) rows_.push_back({step_, kind, node, call, begin, now()});
  }

  /// Writes the file, whole. A full disk is no reason to lose a run: it is said on the standard error, and false is
  /// returned; then the file is empty.
  bool write() const;

 private:
  void write_whole() const;
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::string called() const { return "the record '" + file_ + "'"; }

  std::string file_{};
  const Plan& plan_;
  int rank_, steps_, step_ = 0;
  std::vector<Happened> rows_{};
};

/// Whether programs are recorded that do not ask for it, by PARALLEL_RECORD=FILE.
PARALLEL_INLINE bool records_from_outside();
/// The file for the next program that a rank of this process takes a step of: FILE, of its second FILE-2, and so on.
PARALLEL_INLINE std::string file_from_outside(int rank);

/// The FILE of "--record FILE", or nothing, for programs without other arguments. Throws Failure(usage) for any other
/// argument.
PARALLEL_INLINE std::string record_argument(int argc, char** argv);

}  // namespace parallel::internals

namespace parallel {
using internals::Happened;
using internals::record_argument;
using internals::Recording;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/recording.ipp>
#endif
