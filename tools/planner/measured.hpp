// When the stages of a pipeline worked on their tasks in a step of a run, from their records.
#pragma once
#include <span>

#include "overlay.hpp"

namespace planner {

/// A step of a run, on a clock that begins with its first task.
struct Measured {
  int step = 0;
  Timing timing{};
  bool one_clock = true;  ///< of all ranks; else each stage's step is laid as if all had begun at once
};

/// Of the steps but the first, where caches fill, and those that were skipped, the one that took the median time.
/// Throws Failure where there is none.
inline int median_step(const RankRecord& record, const std::vector<int>& skipped) {
  std::map<int, std::pair<double, double>> steps;  // begin and end
  for (const Recorded& r : record.lines)
    if (!is_counter(r)) steps.try_emplace(r.step, r.begin, r.end).first->second.second = r.end;
  if (steps.size() > 1) steps.erase(steps.begin());
  for (const int step : skipped) steps.erase(step);
  if (steps.empty())
    throw Failure(
        "the record '" + record.file +
            "' has no step to draw: all, or all but the first, where caches fill, were skipped, as their gradients were no finite numbers",
        exit_code::plans_differ);
  std::vector<std::pair<double, int>> order;
  for (const auto& [step, times] : steps) order.emplace_back(times.second - times.first, step);
  std::sort(order.begin(), order.end());
  return order[order.size() / 2].second;
}

/// What a record has of a step, but the counter. Throws Failure where that is nothing.
inline std::span<const Recorded> lines_of(const RankRecord& record, int step) {
  const auto is = [&](const Recorded& r) { return r.step == step && !is_counter(r); };
  const auto begin = std::find_if(record.lines.begin(), record.lines.end(), is),
             end = std::find_if_not(begin, record.lines.end(), is);
  if (begin == end)
    throw Failure("the record '" + record.file + "' has no step " + std::to_string(step) +
                      ", which others have; record the run again",
                  exit_code::plans_differ);
  return {begin, end};
}

/// When each task of a stage ran in a step that is the plan's: until its last event, and as long as it took less its
/// waits for other stages.
inline Vector<Span> measured(const Plan& plan, std::span<const Recorded> step) {
  Vector<Span> spans;
  spans.resize(static_cast<int>(plan.graph.slots.size()));
  int task = -1;  // before the work on micro-batches
  double waited = 0;
  auto line = step.begin();
  const auto event = [&](const Event& e) {
    if (e.kind == EventKind::begin || e.kind == EventKind::end) return;
    const Recorded& r = *line++;
    if (task < 0 || task >= spans.size()) return;
    if (e.kind == EventKind::wait && plan.graph.node(e.node).transition.along != 0) {
      waited += r.end - r.begin;
      return;
    }
    spans[task].begin += waited;
    spans[task].end = r.end;
    waited = 0;
  };
  each_event(plan, event, [&](int slot) {
    const double now = line != step.end() ? line->begin : step.back().end;
    task = slot;
    if (task < spans.size()) spans[task] = {now, now};
    waited = 0;
  });
  return spans;
}

inline void shift(Vector<Span>& spans, double by) {
  for (Span& s : spans) {
    s.begin -= by;
    s.end -= by;
  }
}
/// Whether no task ends before the one whose result it needs has begun: else the ranks' clocks are not one.
inline bool in_order(const Timing& timing) {
  for (int stage = 0; stage < timing.tasks.size(); ++stage)
    for (int i = 0; i < timing.spans[stage].size(); ++i)
      if (const StageTask from = timing.tasks.sender(timing.tasks.stages[stage][i], stage); from.stage >= 0)
        if (timing.spans[stage][i].end < timing.spans[from.stage][timing.tasks.place(from.task, from.stage)].begin)
          return false;
  return true;
}

/// `records`: of a rank on each stage, with the stage's plan; laid over it. `skipped`: steps of theirs. Throws Failure.
inline Measured measured(const AllTasks& tasks, const std::vector<std::pair<const Plan*, const RankRecord*>>& records,
                         const std::vector<int>& skipped) {
  Measured result{median_step(*records[0].second, skipped)};
  Vector<Vector<Span>> spans;
  for (const auto& [plan, record] : records) spans.push_back(measured(*plan, lines_of(*record, result.step)));
  result.one_clock = in_order(timed(tasks, spans));
  double earliest = Span::never;
  for (int stage = 0; stage < spans.size(); ++stage) {
    if (!result.one_clock)
      shift(spans[stage], lines_of(*records[static_cast<std::size_t>(stage)].second, result.step).front().begin);
    if (!spans[stage].empty()) earliest = std::min(earliest, spans[stage][0].begin);
  }
  for (Vector<Span>& stage : spans) shift(stage, earliest);
  result.timing = timed(tasks, spans);
  return result;
}

inline double work(const Timing& timing) {
  double seconds = 0;
  for (const Vector<Span>& stage : timing.spans)
    for (const Span& s : stage) seconds += s.end - s.begin;
  return seconds;
}
/// A schedule in a run's unit of time: all stages together work as long.
inline Timing scaled(Timing timing, const Timing& run) {
  const double by = work(run) / work(timing);
  for (Vector<Span>& stage : timing.spans)
    for (Span& s : stage) {
      s.begin *= by;
      s.end *= by;
    }
  return timed(timing.tasks, timing.spans);
}

/// Two rows for each stage: as it is planned, and as it ran.
inline std::string picture(const Timing& planned, const Timing& run, std::string axis) {
  std::string ran = "run";
  const std::size_t width = std::max(axis.size(), ran.size());
  axis.insert(0, width - axis.size(), ' ');
  ran.insert(0, width - ran.size(), ' ');
  const double unit = picture_unit({&planned, &run});
  std::istringstream above(picture(planned, unit, axis)), below(picture(run, unit, ran));
  std::string out;
  for (std::string first, second; std::getline(above, first) && std::getline(below, second);)
    out += first + "\n" + second + "\n";
  return out;
}

}  // namespace planner
