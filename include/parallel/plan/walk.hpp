// A plan as it happens: every event of a step in order, loops gone through.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// Where the parts of a stage's work on a micro-batch begin in the plan's events, and behind the last of them what
/// follows.
constexpr Vector<int> begins_of_parts(const Plan& plan) {
  Vector<int> begins;
  for (int at = 0; at < static_cast<int>(plan.events.size()); ++at) {
    const Event& e = plan.events[static_cast<std::size_t>(at)];
    if ((e.kind == EventKind::begin || e.kind == EventKind::end) && plan.graph.in_parts(plan.graph.node(e.node).region))
      begins.push_back(at + 1);
  }
  return begins;
}

/// A plan's events as they happen, loops gone through, stretch by stretch: what stands before a stage's work on
/// micro-batches, each part of it, and what stands behind. The events of a plan without such parts are one stretch.
class Stretches {
 public:
  constexpr explicit Stretches(const Plan& plan) : plan_(plan) {
    const auto regions = static_cast<int>(plan.graph.regions.size());
    iterations_.resize(regions, 0);
    begins_.resize(regions, 0);
    started_.resize(static_cast<int>(plan.graph.nodes.size()), false);
  }

  /// Calls f(event) from an event on to the end of its stretch. What was never started is not waited for.
  template <class F>
  constexpr void from(int at, F f) {
    for (; at < static_cast<int>(plan_.events.size()); ++at) {
      const Event& e = plan_.events[static_cast<std::size_t>(at)];
      const int region = plan_.graph.node(e.node).region;
      if (e.kind != EventKind::wait || started_[e.node]) f(e);
      if (e.kind == EventKind::start || e.kind == EventKind::wait) started_[e.node] = e.kind == EventKind::start;
      if (e.kind == EventKind::begin) {
        begins_[region] = at;
        iterations_[region] = 0;
      }
      if (plan_.graph.in_parts(region) && (e.kind == EventKind::begin || e.kind == EventKind::end)) return;
      if (e.kind == EventKind::end && ++iterations_[region] < plan_.graph.region(region).count) at = begins_[region];
    }
  }

 private:
  const Plan& plan_;
  Vector<int> iterations_{}, begins_{};  ///< per region
  Vector<bool> started_{};               ///< per node
};

/// Calls f(event) for every event of one step, those within loops once per iteration, those of a stage's work in the
/// order of its schedule.
template <class F>
constexpr void each_event(const Plan& plan, F f) {
  Stretches stretches(plan);
  const Vector<int> parts = begins_of_parts(plan);
  stretches.from(0, f);
  for (const Slot& s : plan.graph.slots) stretches.from(parts[s.segment], f);
  if (!parts.empty()) stretches.from(parts.back(), f);
}

}  // namespace parallel::internals

namespace parallel {
using internals::each_event;
}  // namespace parallel
