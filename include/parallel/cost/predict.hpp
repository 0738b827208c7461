// A step of a whole program on a machine, through all stages of its pipeline: how long it takes, what of it is waiting,
// what every stage needs.
#pragma once
#include <stdexcept>

#include <parallel/cost/simulate.hpp>
#include <parallel/plan/derive.hpp>

namespace parallel::internals {

/// Seconds in which a rank computes nothing, as it waits for collectives or messages on these axes.
struct Exposed {
  AxisList axes{};
  double seconds = 0;
};

/// What the stages of one kind take: the first, the last, those between that have as many layers. Without stages there
/// is one kind.
struct StageTimes {
  int stage = 0;             ///< of this kind the one that needs most memory
  int count = 1;             ///< of this kind
  double before = 0;         ///< seconds, once a step: before the work on micro-batches
  Vector<double> parts{};    ///< seconds of a micro-batch, by Slot::part
  Vector<double> arrives{};  ///< by part: when a neighbour has what it sends, in seconds since its end
  double behind = 0;         ///< seconds, once a step: reductions and the optimizer, and waiting for other stages there
  Vector<Exposed> exposed{};  ///< of a step
  Memory memory{};
  double flops = 0;  ///< of a step, on one rank
};

/// One step of all ranks.
struct Prediction {
  double seconds = 0;
  double before = 0;            ///< when the work on micro-batches begins: the slowest stage is ready
  double idle = 0;              ///< seconds in which the busiest stage has no work, its waiting for messages left out
  Vector<Exposed> exposed{};    ///< of the busiest stage
  Vector<StageTimes> stages{};  ///< by kind, in the order of their first
  int busiest = 0;              ///< of the kinds the one with most work
  Timing timing{};              ///< of the work on micro-batches; without stages: empty
  /// by node: of what all stages do together behind it, when the last of them comes to it
  Vector<double> awaited{};
  /// products of the model, of all ranks, each once: what is recomputed or done twice does not count
  double model_flops = 0;
  int ranks = 1;

  /// The part of the step that the busiest stage waits for the others.
  constexpr double bubble() const { return seconds > 0 ? idle / seconds : 0; }
  /// Model FLOPs utilization (Chowdhery et al., 2022): of ranks that could do `peak` FLOP/s. Of a step of nothing, 0.
  constexpr double utilization(double peak) const { return seconds > 0 ? model_flops / (seconds * peak * ranks) : 0; }
  /// Bytes of the rank that needs most.
  constexpr std::int64_t peak_memory() const {
    std::int64_t most = 0;
    for (const StageTimes& s : stages) most = s.memory.peak() > most ? s.memory.peak() : most;
    return most;
  }
  /// Exposed seconds on sets of axes that have this one.
  constexpr double waiting(const Axis* axis) const {
    double sum = 0;
    for (const Exposed& e : exposed) sum += e.axes.contains(axis) ? e.seconds : 0;
    return sum;
  }
};

namespace predicting {
constexpr void add(Vector<Exposed>& all, const AxisList& axes, double seconds) {
  for (Exposed& e : all)
    if (e.axes == axes) {
      e.seconds += seconds;
      return;
    }
  all.push_back({axes, seconds});
}

/// Operations of products, forward, and as often again for each of the two gradients: how the literature counts a
/// model's work.
constexpr double model_flops(const Plan& plan) {
  double forward = 0;
  bool trained = false;
  for (const Event& e : plan.events)
    each_node(plan.graph, e, [&](int n) {
      const Node& node = plan.graph.node(n);
      trained = trained || node.phase == Phase::backward;
      const Rate bound = node.operation->rate;
      if (e.kind == EventKind::compute && node.phase == Phase::forward &&
          (bound == Rate::products || bound == Rate::attention))
        forward += static_cast<double>(node.flops) * static_cast<double>(plan.graph.times(node));
    });
  return (trained ? 3 : 1) * forward;
}

/// The stages that do the same: the first, the last, and those between that have as many layers. Their plans differ by
/// the room for micro-batches that are under way.
struct Kind {
  Mesh mesh{};  ///< as the one of them sees it that needs most room
  int count = 0;
  int lanes = 0;
};
struct Kinds {
  Vector<Kind> all{};
  Vector<int> of{};  ///< per stage
};
constexpr Kinds kinds_of(const GraphView& graph, const Mesh& mesh, const Pipeline& pipeline) {
  Kinds kinds;
  const auto ends = [&](int stage) { return (stage == 0 ? 1 : 0) + (stage == pipeline.stages - 1 ? 2 : 0); };
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    Vector<Slot> slots;
    GraphView seen = graph;
    const Mesh here = with_cut(graph, mesh.on_stage(stage));
    if (pipeline.stages > 2) seen.slots = slots = locating::slots_of(graph, here, pipeline, parts_of(graph, pipeline));
    int k = 0;
    while (k < kinds.all.size() &&
           !(ends(kinds.all[k].mesh.here) == ends(stage) && kinds.all[k].mesh.cut.layers == here.cut.layers))
      ++k;
    if (k == kinds.all.size()) kinds.all.push_back({});
    Kind& kind = kinds.all[k];
    if (seen.lanes() > kind.lanes) {
      kind.mesh = here;
      kind.lanes = seen.lanes();
    }
    ++kind.count;
    kinds.of.push_back(k);
  }
  return kinds;
}

/// One stage's plan, gone through part by part.
struct Stage {
  Planned planned{};
  Plan plan{};
  Vector<int> begins{};
  StageTimes times{};

  constexpr void derive(const GraphView& graph, const Mesh& mesh) {
    const GraphView view = plan_into(planned, graph, mesh);
    plan = Plan(view, mesh, planned.events, planned.storage, planned.packing, planned.memory);
    begins = begins_of_parts(plan);
    times.memory = plan.memory;
    times.flops = plan.flops();
    times.stage = mesh.here;
  }
  /// Its events from one place up to another, begun at some time.
  constexpr simulating::Walk walk(const Machine& machine, int from, int to, double begin,
                                  Vector<double>& awaited) const {
    simulating::Walk walk(plan, machine);
    walk.alone = false;
    walk.now = begin;
    if (!awaited.empty()) walk.awaited = awaited;
    const auto happen = [&](const Event& e) {
      const Transition& t = plan.graph.node(e.node).transition;
      const bool all = t.along == 0 && t.axes.contains(plan.graph.stages);
      if (!awaited.empty() && all && e.kind == (machine.overlaps ? EventKind::start : EventKind::wait))
        awaited[e.node] = simulating::latest(awaited[e.node], walk.now);
      walk(e);
    };
    Walked walked(plan);
    each_event(plan, from, to, walked, happen);
    return walk;
  }
  constexpr simulating::Walk behind(const Machine& machine, double begin, Vector<double>& awaited) const {
    return walk(machine, begins.back(), static_cast<int>(plan.events.size()), begin, awaited);
  }
  constexpr void expose(const Simulation& piece, double times_a_step) {
    for (int i = 0; i < piece.tracks.size(); ++i)
      add(times.exposed, sending_axes(piece.tracks[i], plan.mesh), piece.exposed[i] * times_a_step);
  }
  /// What stands before the work on micro-batches, and each part of that.
  constexpr void time_parts(const Machine& machine) {
    Vector<double> nobody;
    const simulating::Walk first = walk(machine, 0, begins[0], 0, nobody);
    times.before = first.now;
    expose(first.result, 1);
    for (int p = 0; p + 1 < begins.size(); ++p) {
      const simulating::Walk part = walk(machine, begins[p], begins[p + 1], 0, nobody);
      double sent = 0;
      for (const Slice& s : part.result.slices)
        if (const Transition& t = plan.graph.node(s.node).transition;
            t.along != 0 && t.collective == Collective::send && s.end > sent)
          sent = s.end;
      times.parts.push_back(part.now);
      times.arrives.push_back(sent > 0 ? sent - part.now : 0);
      int often = 0;
      for (const Slot& s : plan.graph.slots) often += s.part == p;
      expose(part.result, often);
    }
  }
};

/// The work on micro-batches, as the schedule has it.
constexpr Timing time(const GraphView& graph, const Pipeline& p, const Vector<int>& kind_of, const Vector<Stage>& kinds,
                      bool transfers) {
  const Vector<StagePart> parts = parts_of(graph, p);
  const auto of = [&](const Vector<double>& figures, Task t) {
    const int part = part_of(parts, t);
    return part < figures.size() ? figures[part] : 0;
  };
  return timed(
      schedule_of(graph, p), p.stages, p.micro_batches,
      [&](int stage, Task t) { return of(kinds[kind_of[stage]].times.parts, t); },
      [&](int stage, Task t) { return transfers ? of(kinds[kind_of[stage]].times.arrives, t) : 0; });
}
constexpr double end_of(const Vector<Span>& spans) { return spans.empty() ? 0 : spans.back().end; }
constexpr double end_of(const Timing& timing) {
  double end = 0;
  for (const Vector<Span>& spans : timing.spans) end = simulating::latest(end, end_of(spans));
  return end;
}
}  // namespace predicting

/// What a step of a program takes on a mesh that has been checked. Stages of one kind do the same, so a few plans serve
/// for any number of them. The work on micro-batches takes what the schedule makes of its parts; before it the slowest
/// stage counts, and behind it what all stages reduce together begins when the last of them is there.
constexpr Prediction predict(const GraphView& graph, const Mesh& mesh, const Machine& machine) {
  using namespace predicting;
  if (!graph.parts.empty())
    throw std::invalid_argument(
        "parallel::predict: this graph is what one stage sees of its program; say predict<Program>(mesh, machine)");
  const Pipeline p = pipeline_of(graph, mesh);
  const Kinds kinds = kinds_of(graph, mesh, p);
  Vector<Stage> stages;
  stages.resize(kinds.all.size());
  Prediction result;
  result.ranks = mesh.ranks();
  double& begin = result.before;
  for (int k = 0; k < stages.size(); ++k) {
    stages[k].derive(graph, kinds.all[k].mesh);
    stages[k].times.count = kinds.all[k].count;
    stages[k].time_parts(machine);
    result.model_flops += model_flops(stages[k].plan) * stages[k].times.count;
    begin = simulating::latest(begin, stages[k].times.before);
  }
  const bool loop = !stages[0].plan.graph.parts.empty();
  // by kind: when the last of its stages has ended the loop, and seconds in which one works
  Vector<double> ends, works;
  ends.resize(stages.size(), 0);
  works.resize(stages.size(), 0);
  double transfers = 0;
  if (loop) {
    result.timing = time(graph, p, kinds.of, stages, true);
    transfers = simulating::latest(0, end_of(result.timing) - end_of(time(graph, p, kinds.of, stages, false)));
    for (int s = 0; s < p.stages; ++s) {
      const int k = kinds.of[s];
      ends[k] = simulating::latest(ends[k], begin + end_of(result.timing.spans[s]));
      works[k] = 0;  // the same in all stages of a kind
      for (const Span& span : result.timing.spans[s]) works[k] += span.end - span.begin;
    }
  }
  Vector<double>& awaited = result.awaited;
  awaited.resize(static_cast<int>(graph.nodes.size()), 0);
  double sum = 0, before = -1;
  while (loop && sum > before) {  // until no stage comes later to what they do together
    before = sum;
    sum = 0;
    for (int k = 0; k < stages.size(); ++k)
      stages[k].times.behind = stages[k].behind(machine, ends[k], awaited).now - ends[k];
    for (const double at : awaited) sum += at;
  }
  for (int k = 0; k < stages.size(); ++k) {
    StageTimes& times = stages[k].times;
    works[k] += times.before;
    if (loop) {
      const Simulation last = stages[k].behind(machine, ends[k], awaited).result;
      stages[k].expose(last, 1);
      works[k] += last.busy(0);
      for (const double seconds : last.exposed) works[k] += seconds;
    } else {
      ends[k] = times.before;
    }
    result.seconds = simulating::latest(result.seconds, ends[k] + times.behind);
    if (works[k] > works[result.busiest]) result.busiest = k;
    result.stages.push_back(times);
  }
  result.exposed = result.stages[result.busiest].exposed;
  if (transfers > 0) add(result.exposed, {graph.stages}, transfers);
  result.idle = simulating::latest(0, result.seconds - works[result.busiest] - transfers);
  return result;
}

/// The same of a program, on a mesh that is checked here. Throws MeshRefused.
template <class Program>
Prediction predict(const Mesh& mesh, const Machine& machine) {
  static_cast<void>(derive<Program>(mesh));
  return predict(GraphView(constants::graph<Program>), mesh, machine);
}

/// The step of one stage among the others, of which `all` is.
constexpr Simulation simulate(const Plan& plan, const Machine& machine, const Prediction& all) {
  simulating::Walk walk(plan, machine);
  walk.alone = false;
  walk.awaited = all.awaited;
  each_event(
      plan, [&](const Event& e) { walk(e); },
      [&](int slot) {
        if (slot < static_cast<int>(plan.graph.slots.size()))
          walk.now = simulating::latest(walk.now, all.before + all.timing.spans[plan.mesh.here][slot].begin);
      });
  walk.result.seconds = walk.now;
  return static_cast<Simulation&&>(walk.result);
}

}  // namespace parallel::internals

namespace parallel {
using internals::Exposed;
using internals::predict;
using internals::Prediction;
using internals::simulate;
using internals::StageTimes;
}  // namespace parallel
