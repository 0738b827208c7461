// What one stage of a pipeline has of a program: its nodes, in the parts in which it works on a micro-batch, and the
// order of these parts.
#pragma once
#include <parallel/plan/events.hpp>
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
/// Into how many parts the work on a micro-batch and chunk is divided.
constexpr int parts_of_work(const GraphView& g, const Pipeline& p) {
  return p.trained ? 2 + (g.schedule->weights_apart ? 1 : 0) + (g.schedule->asynchronous ? 1 : 0) : 1;
}
/// Which of them does a task's work: an update is the last.
constexpr int part_of_work(Work work, int parts) { return work == Work::update ? parts - 1 : static_cast<int>(work); }
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
  Schedule schedule = *g.schedule;
  schedule.chunks = p.chunks;
  const ScheduleRefusal refusal = check(schedule, p.stages, p.micro_batches);
  if (refusal || !schedule.asynchronous) return refusal;
  // an update is by one gradient: it stands behind it, before the next
  for (int stage = 0; stage < p.stages; ++stage) {
    const Tasks tasks = schedule.tasks(stage, p.stages, p.micro_batches, p.chunks);
    for (int i = 0; i < tasks.size(); ++i)
      if (const Task t = tasks[i];
          t.work == last_use(schedule) &&
          (i + 1 == tasks.size() || !(tasks[i + 1] == Task{Work::update, t.micro_batch, t.chunk})))
        return {.reason = ScheduleReason::update_late, .rank = stage, .micro_batch = t.micro_batch, .chunk = t.chunk};
  }
  return {};
}
constexpr ScheduleRefusal check_waits(const GraphView& g, const Mesh& mesh) {
  const Pipeline p = pipeline_of(g, mesh);
  return p.scheduled() ? check_waits(*g.schedule, p.stages, p.micro_batches) : ScheduleRefusal{};
}
constexpr ScheduleRefusal check_schedule(const GraphView& g, const Mesh& mesh) {
  const ScheduleRefusal refusal = check_tasks(g, mesh);
  return refusal ? refusal : check_waits(g, mesh);
}

/// A program as a stage sees it. The content of the loop over micro-batches stands in the order part by part, forward,
/// backward and, where the schedule has them apart, weights, for each chunk; each part ends with the loop's end.
struct Located {
  Vector<IndexOf<Node>> order{};
  Vector<Region> regions{};
  Vector<Slot> slots{};
  int parts = 1;
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
/// done.
constexpr void fill_slots(const GraphView& g, const Mesh& mesh, const Pipeline& p, Located& l) {
  const int chunks = p.chunks, micro_batches = p.micro_batches;
  Vector<int> lane_of, left;
  Vector<bool> taken;
  lane_of.resize(micro_batches * chunks, -1);
  left.resize(micro_batches * chunks, l.parts);
  Tasks tasks;
  if (p.trained)
    tasks = g.schedule->tasks(mesh.here, p.stages, micro_batches, chunks);
  else
    for (int j = 0; j < micro_batches; ++j)
      for (int chunk = 0; chunk < chunks; ++chunk) tasks.push_back({Work::forward, j, chunk});
  for (const Task& task : tasks) {
    const int part = part_of_work(task.work, l.parts);
    const int flight = task.chunk * micro_batches + task.micro_batch;
    int& lane = lane_of[flight];
    if (lane < 0) {
      lane = 0;
      while (lane < taken.size() && taken[lane]) ++lane;
      if (lane == taken.size()) taken.push_back(true);
      taken[lane] = true;
    }
    l.slots.push_back({task.chunk * l.parts + part, task.micro_batch, task.chunk, lane});
    if (--left[flight] == 0) taken[lane] = false;
  }
}
}  // namespace locating

constexpr Located locate(const GraphView& g, const Mesh& mesh) {
  using namespace locating;
  Located l;
  const Pipeline p = pipeline_of(g, mesh);
  const int chunks = p.chunks;
  for (Region region : g.regions) {
    if (region.staged) region.count = mesh.cut.axis != nullptr ? mesh.cut.layers : region.count / (p.stages * chunks);
    l.regions.push_back(region);
  }
  int micro = 0;
  for (int r = 1; r < l.regions.size(); ++r)
    if (l.regions[r].kind == RegionKind::micro_batches) micro = r;
  l.parts = parts_of_work(g, p);
  const bool apart = p.trained && g.schedule->weights_apart;
  Vector<bool> input;
  if (apart) input = for_input(g, mesh);
  const auto part_of = [&](int n) {
    const Phase phase = g.node(n).phase;
    return phase == Phase::forward ? 0 : phase == Phase::optimizer ? l.parts - 1 : apart && !input[n] ? 2 : 1;
  };

  Vector<bool> inside;
  for (std::size_t at = 0; at < g.order.size(); ++at) {
    const int n = g.order[at];
    if (!g.inside(g.node(n).region, micro)) {
      if (runs(g, mesh, g.node(n), -1)) l.order.push_back(n);
      continue;
    }
    std::size_t end = at;  // the whole loop at once
    while (g.order[end] != g.region(micro).end) ++end;
    l.order.push_back(n);
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int part = 0; part < l.parts; ++part) {
        inside.clear();
        inside.resize(static_cast<int>(g.regions.size()), false);
        const auto mine = [&](int m) { return runs(g, mesh, g.node(m), chunk) && part_of(m) == part; };
        for (std::size_t i = at + 1; i < end; ++i)
          if (mine(g.order[i]))
            for (int r = g.node(g.order[i]).region; r > micro; r = g.region(r).parent) inside[r] = true;
        for (std::size_t i = at + 1; i < end; ++i)
          if (const int m = g.order[i]; g.node(m).results == 0 ? inside[g.node(m).region] : mine(m))
            l.order.push_back(m);
        l.order.push_back(g.order[end]);
      }
    at = end;
  }
  fill_slots(g, mesh, p, l);
  return l;
}

/// What a slot of a stage's work is in its schedule.
constexpr Task task_of(const GraphView& g, const Slot& slot) {
  const int part = slot.segment % g.parts;
  return {part == 2 && !g.schedule->weights_apart ? Work::update : static_cast<Work>(part), slot.micro_batch,
          slot.chunk};
}

/// The graph as a stage sees it; `located` outlives it. One without stages is as it is.
constexpr GraphView seen(const GraphView& g, const Located& located) {
  GraphView view = g;
  view.order = located.order;
  view.regions = located.regions;
  view.slots = located.slots;
  view.parts = located.parts;
  return view;
}

}  // namespace parallel::internals
