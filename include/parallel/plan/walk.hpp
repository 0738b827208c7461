// A plan as it happens: every event of a step in order, loops gone through.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel {

/// Calls f(event) for every event of one step, those within loops once per iteration.
template <class F>
constexpr void each_event(const Plan& plan, F f) {
  Vector<int> iterations, begins;
  iterations.resize(static_cast<int>(plan.graph.regions.size()), 0), begins.resize(static_cast<int>(plan.graph.regions.size()), 0);
  for (int at = 0; at < static_cast<int>(plan.events.size()); ++at) {
    const Event& e = plan.events[static_cast<std::size_t>(at)];
    const int region = plan.graph.node(e.node).region;
    if (!e.crossing || iterations[region] > 0) f(e);
    if (e.kind == EventKind::begin) begins[region] = at, iterations[region] = 0;
    if (e.kind == EventKind::end && ++iterations[region] < plan.graph.region(region).count) at = begins[region];
  }
}

}  // namespace parallel
