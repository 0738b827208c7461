// What a rank's memory holds at each moment of a step: bytes by use, and the values that live then.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// What lives in the arena, each from its first event to its last.
constexpr Vector<Allocation> allocations(const Plan& plan) {
  Placing placing(plan.graph, plan.mesh);
  placing.assign(plan.events);
  placing.live(plan.events);
  placing.pack();
  Vector<Allocation> living;
  for (const Allocation& a : placing.allocations)
    if (a.first >= 0) living.push_back(a);
  return living;
}

/// The bytes that are held while an event of a plan happens. Within the arena there may be gaps between them.
struct Moment {
  int event = 0;  ///< in the plan's list; behind the last: the end of the step
  std::int64_t by_use[uses]{};

  constexpr std::int64_t of(Use use) const { return by_use[static_cast<int>(use)]; }
  constexpr std::int64_t bytes() const {
    std::int64_t all = 0;
    for (const std::int64_t b : by_use) all += b;
    return all;
  }
};
/// `living`: what allocations(plan) gave.
constexpr Moment moment(const Plan& plan, const Vector<Allocation>& living, int event) {
  Moment m{event};
  for (const Use held : {Use::parameters, Use::optimizer_state, Use::inputs})
    m.by_use[static_cast<int>(held)] = plan.memory.of(held);
  for (const Allocation& a : living)
    if (!a.host && a.first <= event && event <= a.last) m.by_use[static_cast<int>(a.use)] += a.bytes;
  return m;
}
/// The first moment at which a rank holds most.
constexpr Moment fullest(const Plan& plan) {
  const Vector<Allocation> living = allocations(plan);
  Moment most;
  for (const Allocation& a : living)  // where something begins to live, if anything does
    if (const Moment m = moment(plan, living, a.first);
        m.bytes() > most.bytes() || (m.bytes() == most.bytes() && m.event < most.event))
      most = m;
  return living.empty() ? moment(plan, living, 0) : most;
}

}  // namespace parallel::internals

namespace parallel {
using internals::fullest;
using internals::Moment;
}  // namespace parallel
