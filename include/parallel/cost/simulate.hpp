// A step of a plan on a machine: when each operation and collective of a rank begins and ends, and how long the step
// takes.
#pragma once
#include <parallel/cost/price.hpp>
#include <parallel/plan/walk.hpp>

namespace parallel::internals {

/// Something that takes time, in seconds since the step began.
struct Slice {
  int event = 0;  ///< in the plan: compute, start (a collective) or begin (a loop takes its first values)
  int node = 0;
  int iteration = 0;  ///< how often the event has happened before in this step
  int track = 0;      ///< 0: computation; i: the collectives of `Simulation::tracks[i - 1]`
  double begin = 0, end = 0;
};

struct Simulation {
  Vector<Slice> slices{};  ///< as the rank comes to them
  /// the sets of axes that have collectives, in the order of their first; messages that a stage receives apart
  Vector<AxisList> tracks{};
  /// per set: the seconds in which nothing is computed, as one of its collectives is waited for
  Vector<double> exposed{};
  double seconds = 0;  ///< of the step

  /// Seconds in which a track is busy.
  constexpr double busy(int track) const {
    double sum = 0;
    for (const Slice& s : slices) sum += s.track == track ? s.end - s.begin : 0;
    return sum;
  }
};

/// Of some collectives of a step: how long they run, and for how much of that their rank computes.
struct Overlap {
  double seconds = 0;
  double under_computation = 0;
  /// The part that is hidden, from 0 to 1; of no collectives, 0.
  constexpr double share() const { return seconds > 0 ? under_computation / seconds : 0; }
};
/// Of the collectives whose slice `counts` is true of. Each counts from where its track comes to it; what it waits
/// there for another one is that one's time.
template <class Counts>
constexpr Overlap overlap(const Simulation& step, Counts counts) {
  Vector<const Slice*> computed;
  Vector<double> before;  // of each, seconds that are computed before it
  double sum = 0;
  for (const Slice& s : step.slices)
    if (s.track == 0) {
      computed.push_back(&s);
      before.push_back(sum);
      sum += s.end - s.begin;
    }
  const auto computed_until = [&](double time) {
    int low = 0, high = computed.size();  // the first that begins no earlier
    while (low < high) {
      const int middle = (low + high) / 2;
      computed[middle]->begin < time ? low = middle + 1 : high = middle;
    }
    if (low == 0) return 0.0;
    const Slice& last = *computed[low - 1];
    return before[low - 1] + (time < last.end ? time : last.end) - last.begin;
  };
  Overlap all;
  for (const Slice& s : step.slices)
    if (s.track > 0 && counts(s)) {
      all.seconds += s.end - s.begin;
      all.under_computation += computed_until(s.end) - computed_until(s.begin);
    }
  return all;
}
/// Of all of them.
constexpr Overlap overlap(const Simulation& step) {
  return overlap(step, [](const Slice&) { return true; });
}
/// Of the gathers of parameters that are stored split, before their use or behind their update.
constexpr Overlap overlap_of_gathers(const Plan& plan, const Simulation& step) {
  return overlap(step, [&](const Slice& s) {
    const Node& node = plan.graph.node(s.node);
    return node.transition.collective == Collective::all_gather &&
           plan.graph.value(node.result).kind == Kind::parameter;
  });
}

namespace simulating {
constexpr bool same_place(const Plan& plan, int a, int b) {
  const Storage &one = plan.storage[static_cast<std::size_t>(a)], &other = plan.storage[static_cast<std::size_t>(b)];
  return one.block == other.block && one.offset == other.offset && one.modulo == 0;
}
constexpr double latest(double a, double b, double c = 0) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }

struct Walk {
  const Plan& plan;
  const Machine& machine;
  /// what other stages send takes its time where it is received; else whoever walks knows when it is there
  bool alone = true;
  Simulation result{};
  double now = 0;           ///< of the rank's computation
  Vector<double> free{};    ///< per track: when its last collective ends
  Vector<bool> incoming{};  ///< per track: whether it has what is received; links carry both ways at a time
  Vector<double> prices{};  ///< per event; -1: not yet known
  Vector<int> started{};    ///< per node: the slice of its collective that is under way
  Vector<int> happened{};   ///< per event: how often
  /// per node: when the last of the ranks comes to its collective, where others are later
  Vector<double> awaited{};

  constexpr Walk(const Plan& p, const Machine& m) : plan(p), machine(m) {
    const auto nodes = static_cast<int>(p.graph.nodes.size());
    const auto events = static_cast<int>(p.events.size());
    started.resize(nodes, -1);
    awaited.resize(nodes, 0);
    prices.resize(events, -1);
    happened.resize(events, 0);
  }
  constexpr int index(const Event& e) const { return static_cast<int>(&e - plan.events.data()); }
  constexpr double price(const Event& e) {
    double& price = prices[index(e)];
    if (price < 0) price = seconds(plan, e, machine);
    return price;
  }
  /// What a collective or message takes here. Where nothing overlaps, who receives copies.
  constexpr double exchange(const Event& e) {
    const Transition& t = plan.graph.node(e.node).transition;
    if (t.along == 0) return price(e);
    if (t.collective == Collective::receive) return alone || !machine.overlaps ? price(e) : 0;
    return machine.overlaps ? price(e) : 0;
  }
  constexpr int track(const Transition& t) {
    const bool receives = t.collective == Collective::receive || t.collective == Collective::fetch;
    for (int i = 0; i < result.tracks.size(); ++i)
      if (result.tracks[i] == t.axes && incoming[i] == receives) return i + 1;
    result.tracks.push_back(t.axes);
    result.exposed.push_back(0);
    free.push_back(0);
    incoming.push_back(receives);
    return result.tracks.size();
  }
  constexpr void put(const Event& e, int track, double begin, double end) {
    result.slices.push_back({index(e), e.node, happened[index(e)]++, track, begin, end});
  }
  constexpr void compute(const Event& e, double time) {
    put(e, 0, now, now + time);
    now += time;
  }
  /// Behind what its axes' track still has to do; where nothing overlaps it begins at the wait instead.
  constexpr void start(const Event& e) {
    const int on = track(plan.graph.node(e.node).transition);
    const double begin = latest(now, free[on - 1], awaited[e.node]), end = begin + exchange(e);
    if (machine.overlaps) free[on - 1] = end;
    started[e.node] = result.slices.size();
    put(e, on, begin, end);
  }
  constexpr void wait(const Event& e) {
    if (!alone && machine.overlaps && plan.graph.node(e.node).transition.along != 0) return;
    Slice& s = result.slices[started[e.node]];
    if (!machine.overlaps) {
      s.begin = latest(now, awaited[e.node]);
      s.end = s.begin + exchange(e);
    }
    if (s.end <= now) return;
    result.exposed[s.track - 1] += s.end - latest(now, awaited[e.node]);
    now = s.end;
  }
  /// What a loop's first iteration takes is copied to where the others find it.
  constexpr void begin(const Event& e) {
    const int region = plan.graph.node(e.node).region;
    double bytes = 0;
    for (const Carry& c : plan.graph.carries)
      if (c.region == region && plan.storage[static_cast<std::size_t>(c.inside)].block != MemoryBlock::none &&
          !same_place(plan, c.inside, c.initial))
        bytes += 2 * static_cast<double>(local_bytes(plan.graph.value(c.inside).type, plan.mesh));
    if (bytes > 0) compute(e, streaming_seconds(bytes, machine.with(plan.mesh.ranks())));
  }
  constexpr void operator()(const Event& e) {
    switch (e.kind) {
      case EventKind::compute: compute(e, price(e)); break;
      case EventKind::start: start(e); break;
      case EventKind::wait: wait(e); break;
      case EventKind::begin: begin(e); break;
      case EventKind::end: break;
    }
  }
};
}  // namespace simulating

/// One step as every rank goes through it: computation in the plan's order on one track, the collectives of a set of
/// axes one behind the other on a track of their own, and waits where the plan has them. A stage of a pipeline is gone
/// through as if it were alone: what it asks for is sent at once. `predict` knows when the others send.
constexpr Simulation simulate(const Plan& plan, const Machine& machine) {
  simulating::Walk walk(plan, machine);
  each_event(plan, [&](const Event& e) { walk(e); });
  walk.result.seconds = walk.now;
  return static_cast<Simulation&&>(walk.result);
}

}  // namespace parallel::internals

namespace parallel {
using internals::Overlap;
using internals::overlap;
using internals::overlap_of_gathers;
using internals::simulate;
using internals::Simulation;
using internals::Slice;
}  // namespace parallel
