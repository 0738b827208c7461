// What happened in the first steps of a run, event by event with times: `tools/plan --run` lays it over the plan.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/exchange.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/new_file.hpp>

namespace parallel {

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
  /// Throws Failure(io) where the file cannot be written, before anything has run.
  Recording(const std::string& file, const Plan& plan, int rank, int steps = 20)
      : Recording(plan, rank, file.empty() ? 0 : steps) {
    if (file.empty()) return;
    file_ = file + "." + std::to_string(rank);
    const NewFile trial(file_, called());
  }
  /// Kept in memory, for a program that reads it itself.
  Recording(const Plan& plan, int rank, int steps) : plan_(plan), rank_(rank), steps_(steps) {
    std::size_t events = 1;
    each_event(plan, [&](const Event&) { ++events; });
    rows_.reserve(events * static_cast<std::size_t>(steps));  // so that the step allocates nothing
  }
  bool active() const { return steps_ > 0; }
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
  /// returned; then there is no file, or the one that was there.
  bool write() const {
    try {
      if (!file_.empty()) write_whole();
      return true;
    } catch (const Failure& failure) {
      std::fprintf(stderr, "warning: %s; the run goes on without it\n", printable(failure.what()).c_str());
      return false;
    }
  }

 private:
  void write_whole() const {
    NewFile file(file_, called());
    std::FILE* const out = file.stream();
    std::fprintf(out, "parallel record 2\nmesh %s\nrank %d\n", text(plan_.mesh).c_str(), rank_);
    for (const Happened& h : rows_) {
      const Node& node = plan_.graph.node(std::max(h.node, 0));
      if (h.node == Happened::counter)
        std::fprintf(out, "%d count -1 %s_max %s %d %s %lld %.9f %.9f\n", h.step,
                     std::string(name_of(h.call.kind)).c_str(), text(plan_.agreement.counter.axes()).c_str(),
                     h.call.ranks, std::string(name_of(h.call.dtype)).c_str(), static_cast<long long>(h.call.bytes),
                     h.begin, h.end);
      else if (h.kind == EventKind::compute)
        std::fprintf(out, "%d compute %d %s - 0 - 0 %.9f %.9f\n", h.step, h.node,
                     std::string(node.operation->name).c_str(), h.begin, h.end);
      else
        std::fprintf(out, "%d %s %d %s%s %s %d %s %lld %.9f %.9f\n", h.step,
                     h.kind == EventKind::start ? "start" : "wait", h.node, std::string(name_of(h.call.kind)).c_str(),
                     h.call.maximum ? "_max" : "", text(node.transition.axes).c_str(), h.call.ranks,
                     std::string(name_of(h.call.dtype)).c_str(), static_cast<long long>(h.call.bytes), h.begin, h.end);
    }
    file.put_in_place();
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::string called() const { return "the record '" + file_ + "'"; }

  std::string file_{};
  const Plan& plan_;
  int rank_, steps_, step_ = 0;
  std::vector<Happened> rows_{};
};

/// The FILE of "--record FILE", or nothing, for programs without other arguments. Throws Failure(usage) for any other
/// argument.
inline std::string record_argument(int argc, char** argv) {
  if (argc == 1) return "";
  if (argc == 3 && std::strcmp(argv[1], "--record") == 0) return argv[2];
  throw Failure("unknown argument, or --record without its file; say " + std::string(argv[0]) + " [--record FILE]",
                exit_code::usage);
}

}  // namespace parallel
