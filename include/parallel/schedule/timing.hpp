// When each task of a schedule runs: stages work in order, as soon as what a task needs has arrived.
#pragma once
#include <limits>

#include <parallel/schedule/tasks.hpp>

namespace parallel {

/// What the works of a whole stage take for a micro-batch, in any unit; a chunk takes its share. Where a schedule
/// leaves no weights apart, its backward takes `backward + weight`. `transfer` is how much later a neighbour has what
/// was sent; it occupies nobody.
struct Durations {
  double forward = 1, backward = 1, weight = 1, update = 0, transfer = 0;

  constexpr double of(const Schedule& schedule, Work work) const {
    const double both = backward + (schedule.weights_apart ? 0 : weight);
    return (work == Work::forward    ? forward
            : work == Work::backward ? both
            : work == Work::weight   ? weight
                                     : update) /
           schedule.chunks;
  }
};

/// When a task runs; never, if it waits for itself.
struct Span {
  static constexpr double never = std::numeric_limits<double>::infinity();
  double begin = never, end = never;
};

/// When every task runs, in the order of `all`. `duration(stage, task)`; `transfer(stage, task)` is the way of its
/// result to the neighbour.
constexpr internals::Vector<internals::Vector<Span>> spans(const internals::AllTasks& all, auto duration,
                                                           auto transfer) {
  internals::Vector<internals::Vector<Span>> result;
  result.resize(all.size());
  internals::Vector<int> ready;
  for (int stage = all.size() - 1; stage >= 0; --stage) ready.push_back(stage);
  while (!ready.empty()) {
    const int stage = ready.back();
    ready.resize(ready.size() - 1);
    const Tasks& tasks = all.stages[stage];
    internals::Vector<Span>& done = result[stage];
    while (done.size() < tasks.size()) {
      const Task t = tasks[done.size()];
      double begin = done.empty() ? 0 : done.back().end;
      if (const internals::StageTask from = all.sender(t, stage); from.stage >= 0) {
        const int place = all.place(from.task, from.stage);
        if (place < 0 || place >= result[from.stage].size()) break;
        const double arrived = result[from.stage][place].end + transfer(from.stage, from.task);
        begin = begin < arrived ? arrived : begin;
      }
      done.push_back({begin, begin + duration(stage, t)});
      if (const internals::StageTask to = all.receiver(t, stage); to.stage >= 0) ready.push_back(to.stage);
    }
  }
  for (int stage = 0; stage < all.size(); ++stage) result[stage].resize(all.stages[stage].size());
  return result;
}

struct Timing {
  internals::AllTasks tasks{};
  internals::Vector<internals::Vector<Span>> spans{};  ///< of tasks.stages
  /// of a step: the longest time from a stage's first task to the end of its last; never, if one waits for itself
  double cost = 0;
  double ideal = 0;  ///< the longest time that a stage works

  constexpr double bubble() const { return (cost - ideal) / cost; }
  constexpr double bubble_over_ideal() const { return (cost - ideal) / ideal; }
};

/// A step whose tasks run at these times, computed or measured.
constexpr Timing timed(const internals::AllTasks& tasks, const internals::Vector<internals::Vector<Span>>& spans) {
  Timing result{tasks, spans};
  for (const internals::Vector<Span>& stage : result.spans) {
    double work = 0;
    for (const Span& s : stage) work += s.end < Span::never ? s.end - s.begin : 0;
    const double end = stage.empty() ? 0 : stage[stage.size() - 1].end;
    const double cost = end < Span::never ? end - (stage.empty() ? 0 : stage[0].begin) : Span::never;
    result.cost = cost > result.cost ? cost : result.cost;
    result.ideal = work > result.ideal ? work : result.ideal;
  }
  return result;
}
constexpr Timing timed(const Schedule& schedule, int stages, int micro_batches, auto duration, auto transfer) {
  const internals::AllTasks tasks = internals::tasks_of(schedule, stages, micro_batches);
  return timed(tasks, spans(tasks, duration, transfer));
}
/// A step of a schedule whose stages all take as long.
constexpr Timing timed(const Schedule& schedule, int stages, int micro_batches, const Durations& durations = {}) {
  return timed(
      schedule, stages, micro_batches, [&](int, Task t) { return durations.of(schedule, t.work); },
      [&](int, Task) { return durations.transfer; });
}

}  // namespace parallel
