// A plan as it happens: every event of a step in order, loops gone through.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel {

/// Where the parts of a stage's work on a micro-batch begin in the plan's events, and behind the last of them what follows.
constexpr Vector<int> begins_of_parts(const Plan& plan) {
  Vector<int> begins;
  for (int at = 0; at < static_cast<int>(plan.events.size()); ++at) {
    const Event& e = plan.events[static_cast<std::size_t>(at)];
    if ((e.kind == EventKind::begin || e.kind == EventKind::end) && plan.graph.in_parts(plan.graph.node(e.node).region)) begins.push_back(at + 1);
  }
  return begins;
}

/// Calls f(event) for every event of one step, those within loops once per iteration, those of a stage's work in the order of its schedule.
template <class F>
constexpr void each_event(const Plan& plan, F f) {
  Vector<int> iterations, begins;
  Vector<bool> started;
  iterations.resize(static_cast<int>(plan.graph.regions.size()), 0), begins.resize(static_cast<int>(plan.graph.regions.size()), 0);
  started.resize(static_cast<int>(plan.graph.nodes.size()), false);
  const Vector<int> parts = begins_of_parts(plan);
  std::size_t slot = 0;
  for (int at = 0; at < static_cast<int>(plan.events.size()); ++at) {
    const Event& e = plan.events[static_cast<std::size_t>(at)];
    const int region = plan.graph.node(e.node).region;
    if (e.kind != EventKind::wait || started[e.node]) f(e);
    if (e.kind == EventKind::start || e.kind == EventKind::wait) started[e.node] = e.kind == EventKind::start;
    if (e.kind == EventKind::begin) begins[region] = at, iterations[region] = 0;
    if (plan.graph.in_parts(region) && (e.kind == EventKind::begin || e.kind == EventKind::end))
      at = (slot < plan.graph.slots.size() ? parts[plan.graph.slots[slot++].segment] : parts.back()) - 1;
    else if (e.kind == EventKind::end && ++iterations[region] < plan.graph.region(region).count)
      at = begins[region];
  }
}

}  // namespace parallel
