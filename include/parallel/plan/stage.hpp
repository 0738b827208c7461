// What one stage of a pipeline has of a program: its nodes, in the parts in which it works on a micro-batch, and the
// order of these parts.
#pragma once
#include <parallel/plan/events.hpp>
#include <parallel/program/asynchronous.hpp>
#include <parallel/schedule/check.hpp>
#include <parallel/schedule/waits.hpp>

namespace parallel::internals {

/// How a program's pipeline is run on a mesh: with no stages, or only one, by no schedule.
struct Pipeline {
  int stages = 1, micro_batches = 1, chunks = 1;
  bool trained = false;
  constexpr bool scheduled() const { return stages > 1 && trained; }
};
constexpr Pipeline pipeline_of(const GraphView& g, const Mesh& mesh) {
  Pipeline p;
  if (g.stages == nullptr) return p;
  p.stages = mesh.extent(g.stages);
  if (p.stages > 1) p.chunks = g.schedule->chunks;
  for (const Region& r : g.regions)
    if (r.kind == RegionKind::micro_batches) p.micro_batches = r.count;
  for (const Node& n : g.nodes) p.trained = p.trained || n.phase == Phase::backward;
  return p;
}
/// The same program run by another schedule, which outlives it.
constexpr Graph with_schedule(Graph graph, const Schedule& schedule) {
  graph.schedule = &schedule;
  graph.chunks = schedule.chunks;
  for (Node& n : graph.nodes)
    if (n.transition.along != 0) n.transition.chunks = schedule.chunks;
  return graph;
}
/// The order in which a stage runs forward only.
inline constexpr Schedule forward_only{"forward_only", 1, false, false, [](int, int, int micro_batches, int chunks) {
                                         Tasks tasks;
                                         for (int j = 0; j < micro_batches; ++j)
                                           for (int chunk = 0; chunk < chunks; ++chunk)
                                             tasks.push_back({Work::forward, j, chunk});
                                         return tasks;
                                       }};
/// The schedule by which stages work; without a backward pass each micro-batch goes through.
constexpr Schedule schedule_of(const GraphView& g, const Pipeline& p) {
  Schedule schedule = p.trained ? *g.schedule : forward_only;
  schedule.chunks = p.chunks;
  return schedule;
}
/// The parts of a stage's work on a micro-batch, chunk by chunk, their nodes not yet known.
constexpr Vector<StagePart> parts_of(const GraphView& g, const Pipeline& p) {
  Vector<StagePart> parts;
  for (int chunk = 0; chunk < p.chunks; ++chunk) {
    parts.push_back({Work::forward, chunk});
    if (p.trained) parts.push_back({Work::backward, chunk});
    if (p.trained && g.schedule->weights_apart) parts.push_back({Work::weight, chunk});
    if (p.trained && g.schedule->asynchronous) parts.push_back({Work::update, chunk});
  }
  return parts;
}
/// Which of them does a task; none: as many as there are.
constexpr int part_of(std::span<const StagePart> parts, const Task& task) {
  std::size_t p = 0;
  while (p < parts.size() && !(parts[p].work == task.work && parts[p].chunk == task.chunk)) ++p;
  return static_cast<int>(p);
}
/// What compilers can be asked within their default limits: some 4,096 things that stages do, or that nothing says what
/// they do. An executor checks any schedule.
constexpr bool checked_by_compiler(const GraphView& g, const Mesh& mesh) {
  const Pipeline p = pipeline_of(g, mesh);
  return g.stages != nullptr && p.trained &&
         (g.schedule->tasks == nullptr || p.stages * p.micro_batches * p.chunks <= 512);
}
/// Why the schedule of a program cannot run on a mesh, if so: of its tasks, and of how stages wait for each other.
constexpr ScheduleRefusal check_tasks(const GraphView& g, const Mesh& mesh) {
  const Pipeline p = pipeline_of(g, mesh);
  if (g.stages == nullptr || !p.trained) return {};
  const Schedule schedule = schedule_of(g, p);
  const ScheduleRefusal refusal = check(schedule, p.stages, p.micro_batches);
  return refusal ? refusal : asynchronous::late_update(schedule, p.stages, p.micro_batches);
}
constexpr ScheduleRefusal check_waits(const GraphView& g, const Mesh& mesh) {
  const Pipeline p = pipeline_of(g, mesh);
  return p.scheduled() ? check_waits(*g.schedule, p.stages, p.micro_batches) : ScheduleRefusal{};
}
constexpr ScheduleRefusal check_schedule(const GraphView& g, const Mesh& mesh) {
  const ScheduleRefusal refusal = check_tasks(g, mesh);
  return refusal ? refusal : check_waits(g, mesh);
}

/// A program as a stage sees it: of the loop over micro-batches the parts of its work stand in the order, each with the
/// loop's end.
struct Located {
  Vector<IndexOf<Node>> order{};
  Vector<Region> regions{};
  Vector<StagePart> parts{};
  Vector<Slot> slots{};
};

namespace locating {
/// Whether a stage, or of its chunks one (-1: any), holds a value.
constexpr bool held(const GraphView& g, const Mesh& mesh, int value, int chunk) {
  const Placement p = g.value(value).type.layout.on(g.stages);
  if (p.kind != PlacementKind::at) return true;
  const int ranks = mesh.extent(g.stages), chunks = g.schedule->chunks;
  if (ranks == 1) return true;
  const bool first = mesh.here == 0 && chunk <= 0, last = mesh.here == ranks - 1 && (chunk < 0 || chunk == chunks - 1);
  return (first && holds(p, 0, ranks)) || (last && holds(p, ranks - 1, ranks));
}
constexpr bool runs(const GraphView& g, const Mesh& mesh, const Node& node, int chunk) {
  return node.results > 0 && (node.transition.along != 0 || held(g, mesh, node.result, chunk));
}

/// Which nodes of the backward pass the gradient needs that goes to the stage before; the others are gradients of
/// weights.
constexpr Vector<bool> for_input(const GraphView& g, const Mesh& mesh) {
  Vector<bool> values;
  values.resize(g.size_of_values(), false);
  for (const Node& n : g.nodes)
    if (n.transition.along == -1 && n.transition.collective == Collective::send) values[n.result] = true;
  return makers(g, mesh, static_cast<Vector<bool>&&>(values));
}

/// The work on each micro-batch and chunk in the schedule's order, and for each where its activations lie until it is
/// done. What no stage does is left out: compilers do not check long schedules. Whoever derives or runs refuses them,
/// and only in one that was checked a slot is what its task is.
constexpr Vector<Slot> slots_of(const GraphView& g, const Mesh& mesh, const Pipeline& p,
                                const Vector<StagePart>& parts) {
  Vector<Slot> slots;
  Vector<int> lane_of, left;
  Vector<bool> taken;
  lane_of.resize(p.micro_batches * p.chunks, -1);
  left.resize(p.micro_batches * p.chunks, parts.size() / p.chunks);
  for (const Task& task : schedule_of(g, p).tasks(mesh.here, p.stages, p.micro_batches, p.chunks)) {
    const int part = part_of(parts, task), flight = task.chunk * p.micro_batches + task.micro_batch;
    if (part == parts.size() || task.micro_batch < 0 || task.micro_batch >= p.micro_batches) continue;
    int& lane = lane_of[flight];
    if (lane < 0) {
      lane = 0;
      while (lane < taken.size() && taken[lane]) ++lane;
      if (lane == taken.size()) taken.push_back(true);
      taken[lane] = true;
    }
    slots.push_back({part, task.micro_batch, lane});
    if (--left[flight] == 0) taken[lane] = false;
  }
  return slots;
}
}  // namespace locating

constexpr Located locate(const GraphView& g, const Mesh& mesh) {
  using namespace locating;
  Located l;
  const Pipeline p = pipeline_of(g, mesh);
  for (Region region : g.regions) {
    if (region.staged)
      region.count = mesh.cut.axis != nullptr ? mesh.cut.layers / region.blocks : region.count / (p.stages * p.chunks);
    l.regions.push_back(region);
  }
  int micro = 0;
  for (int r = 1; r < l.regions.size(); ++r)
    if (l.regions[r].kind == RegionKind::micro_batches) micro = r;
  l.parts = parts_of(g, p);
  const bool apart = p.trained && g.schedule->weights_apart;
  Vector<bool> input;
  if (apart) input = for_input(g, mesh);
  const auto work_of = [&](int n) {
    const Phase phase = g.node(n).phase;
    return phase == Phase::forward     ? Work::forward
           : phase == Phase::optimizer ? l.parts.back().work
           : apart && !input[n]        ? Work::weight
                                       : Work::backward;
  };

  for (std::size_t at = 0; at < g.order.size(); ++at) {
    const int n = g.order[at];
    if (!g.inside(g.node(n).region, micro)) {
      if (runs(g, mesh, g.node(n), -1)) l.order.push_back(n);
      continue;
    }
    std::size_t end = at;  // the whole loop at once
    while (g.order[end] != g.region(micro).end) ++end;
    l.order.push_back(n);
    for (StagePart& part : l.parts) {
      part.begin = l.order.size();
      Vector<bool> inside;
      inside.resize(static_cast<int>(g.regions.size()), false);
      const auto mine = [&](int m) { return runs(g, mesh, g.node(m), part.chunk) && work_of(m) == part.work; };
      for (std::size_t i = at + 1; i < end; ++i)
        if (mine(g.order[i]))
          for (int r = g.node(g.order[i]).region; r > micro; r = g.region(r).parent) inside[r] = true;
      for (std::size_t i = at + 1; i < end; ++i)
        if (const int m = g.order[i]; g.node(m).results == 0 ? inside[g.node(m).region] : mine(m)) l.order.push_back(m);
      l.order.push_back(g.order[end]);
      part.end = l.order.size();
    }
    at = end;
  }
  l.slots = slots_of(g, mesh, p, l.parts);
  return l;
}

/// The graph as a stage sees it; `located`, a Located or a constant of one, outlives it.
constexpr GraphView seen(const GraphView& g, const auto& located) {
  GraphView view = g;
  view.order = located.order;
  view.regions = located.regions;
  view.parts = located.parts;
  view.slots = located.slots;
  return view;
}

}  // namespace parallel::internals
