// A plan as it happens: every event of a step in order, loops gone through.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// Where the parts of a stage's work begin in the plan's events, and behind the last of them what follows; where there
/// are none, the events' end.
constexpr Vector<int> begins_of_parts(const Plan& plan) {
  const auto events = static_cast<int>(plan.events.size()), parts = static_cast<int>(plan.graph.parts.size());
  const auto part = [&](int at) { return plan.events[static_cast<std::size_t>(at)].part; };
  Vector<int> begins;
  int at = parts == 0 ? events : 0;
  for (int p = 0; p < parts; ++p) {
    while (at < events && part(at) < p) ++at;
    begins.push_back(at);
  }
  while (at < events && part(at) >= 0) ++at;  // of the last part, which has at least the loop's end
  begins.push_back(at);
  return begins;
}

/// How far a step has come.
struct Walked {
  Vector<bool> started{};  ///< per node: and not waited for yet
  Vector<bool> last{};     ///< per region: its last iteration is being gone through

  constexpr explicit Walked(const Plan& plan) {
    started.resize(static_cast<int>(plan.graph.nodes.size()), false);
    last.resize(static_cast<int>(plan.graph.regions.size()), false);
  }
};

/// Calls f(event) for the events from one place up to another, loops gone through that end there. What was never
/// started, by node, is not waited for.
template <class F>
constexpr void each_event(const Plan& plan, int at, int end, Walked& walked, F& f) {
  for (; at < end; ++at) {
    const Event& e = plan.events[static_cast<std::size_t>(at)];
    const Node& node = plan.graph.node(e.node);
    if (e.kind == EventKind::start &&
        ((starts_next(e) && walked.last[node.region]) || (node.in_last >= 0 && !walked.last[node.in_last])))
      continue;
    if (e.kind != EventKind::wait || walked.started[e.node]) f(e);
    if (e.kind == EventKind::start || e.kind == EventKind::wait) walked.started[e.node] = e.kind == EventKind::start;
    if (e.kind != EventKind::begin || e.partner >= end) continue;
    const int count = plan.graph.region(node.region).count;
    for (int i = 0; i < count; ++i) {
      walked.last[node.region] = i + 1 == count;
      each_event(plan, at + 1, e.partner + 1, walked, f);
    }
    walked.last[node.region] = false;
    at = e.partner;
  }
}

/// Calls f(event) for every event of one step, those within loops once per iteration, those of a stage's parts in the
/// order of its slots; and before each slot, and behind the last, turn(number of the slot).
template <class F, class Turn>
constexpr void each_event(const Plan& plan, F f, Turn turn) {
  Walked walked(plan);
  const Vector<int> begins = begins_of_parts(plan);
  const auto slots = static_cast<int>(plan.graph.slots.size());
  each_event(plan, 0, begins[0], walked, f);
  for (int s = 0; s < slots; ++s) {
    const int part = plan.graph.slots[static_cast<std::size_t>(s)].part;
    turn(s);
    each_event(plan, begins[part], begins[part + 1], walked, f);
  }
  turn(slots);
  each_event(plan, begins.back(), static_cast<int>(plan.events.size()), walked, f);
}
template <class F>
constexpr void each_event(const Plan& plan, F f) {
  each_event(plan, f, [](int) {});
}

}  // namespace parallel::internals
