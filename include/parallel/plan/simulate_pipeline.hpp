// A step of a pipeline on a machine: when each stage does what, as it waits for the others.
#pragma once
#include <parallel/plan/simulate.hpp>
#include <parallel/plan/stage.hpp>
#include <parallel/schedule/timing.hpp>

namespace parallel {

/// A step of all stages, in seconds.
struct PipelineSimulation {
  Timing timing{};         ///< of the stages' tasks, from the first one on
  double before = 0;       ///< the longest that a stage works before its first task,
  double within = 0;       ///< from the first task of all to the end of the last one,
  double after = 0;        ///< and behind its last task
  constexpr double seconds() const { return before + within + after; }
};

namespace simulating {
/// The walk through a stage's step; f(now) where each of its tasks begins, and where the last one has ended, may let it wait.
constexpr Simulation task_by_task(const Plan& plan, const Machine& machine, auto f) {
  Walk walk(plan, machine);
  each_event(plan, [&](const Event& e) {
    walk(e);
    if ((e.kind == EventKind::begin || e.kind == EventKind::end) && plan.graph.in_parts(plan.graph.node(e.node).region)) f(walk.now);
  });
  walk.result.seconds = walk.now;
  return static_cast<Simulation&&>(walk.result);
}

/// A program's schedule; one without a backward pass sends each micro-batch through.
constexpr Schedule schedule_of(const Plan& plan) {
  if (pipeline_of(plan.graph, plan.mesh).trained) return *plan.graph.schedule;
  Schedule forward{"forward"};
  forward.chunks = plan.graph.schedule->chunks;
  forward.tasks = [](int, int, int micro_batches, int chunks) {
    Vector<Task> tasks;
    for (int j = 0; j < micro_batches; ++j)
      for (int chunk = 0; chunk < chunks; ++chunk) tasks.push_back({Work::forward, j, chunk});
    return tasks;
  };
  return forward;
}

/// What a task's result takes to the neighbour.
constexpr double transfer(const Plan& plan, const Machine& machine, Task task) {
  for (const Node& n : plan.graph.nodes)
    if (n.transition.along == (task.work == Work::forward ? 1 : -1) && n.transition.collective == Collective::send) return collective_seconds(plan, n, machine);
  return 0;
}
}  // namespace simulating

/// A step of all stages; `plans` are theirs, in order.
constexpr PipelineSimulation simulate(std::span<const Plan> plans, const Machine& machine) {
  const Pipeline p = pipeline_of(plans[0].graph, plans[0].mesh);
  PipelineSimulation result;
  Vector<Vector<double>> takes;  // per stage, by the number of its task
  const auto number = [&](Task t) { return (static_cast<int>(t.work) * p.chunks + t.chunk) * p.micro_batches + t.micro_batch; };
  for (const Plan& plan : plans) {
    Vector<double> at;
    const double end = simulating::task_by_task(plan, machine, [&](double& now) { at.push_back(now); }).seconds;
    Vector<double> own;
    own.resize(4 * p.chunks * p.micro_batches, 0);
    for (int i = 0; i + 1 < at.size(); ++i) own[number(task_of(plan.graph, plan.graph.slots[static_cast<std::size_t>(i)]))] = at[i + 1] - at[i];
    takes.push_back(own);
    if (at.empty()) continue;
    result.before = at[0] > result.before ? at[0] : result.before;
    result.after = end - at.back() > result.after ? end - at.back() : result.after;
  }
  result.timing = timed(
      simulating::schedule_of(plans[0]), p.stages, p.micro_batches, [&](int stage, Task t) { return takes[stage][number(t)]; },
      [&](int stage, Task t) { return simulating::transfer(plans[static_cast<std::size_t>(stage)], machine, t); });
  for (const Vector<Span>& stage : result.timing.spans)
    for (const Span& s : stage) result.within = s.end > result.within ? s.end : result.within;
  return result;
}

/// The step of one stage among the others.
constexpr Simulation simulate(const Plan& plan, const Machine& machine, const PipelineSimulation& all) {
  int task = 0;
  return simulating::task_by_task(plan, machine, [&](double& now) {
    const Vector<Span>& spans = all.timing.spans[plan.mesh.here];
    const double begin = all.before + (task < spans.size() ? spans[task].begin : all.within);
    ++task;
    now = begin > now ? begin : now;
  });
}

}  // namespace parallel
