// What a rank's memory holds at each moment of a step: bytes by use and by member, and the values that live
// then.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// What lives in the arena of the device, or of the host, each from its first event to its last.
constexpr Vector<Allocation> allocations(const Plan& plan, bool host = false) {
  Placing placing(plan.graph, plan.mesh);
  placing.assign(plan.events);
  placing.live(plan.events);
  placing.pack();
  Vector<Allocation> living;
  for (const Allocation& a : placing.allocations)
    if (a.first >= 0 && a.host == host) living.push_back(a);
  return living;
}

/// The bytes of the device that are held while an event of a plan happens. Within the arena there may be gaps between
/// them.
struct Moment {
  int event = 0;  ///< in the plan's list; behind the last: the end of the step
  std::int64_t by_use[uses]{};
  std::int64_t scalars = 0;        ///< numbers of the run, as the learning rate
  std::int64_t living = 0;         ///< of them what lies in the arena
  std::int64_t highest_place = 0;  ///< where in the arena what lives ends

  constexpr std::int64_t of(Use use) const { return by_use[static_cast<int>(use)]; }
  constexpr std::int64_t bytes() const {
    std::int64_t all = scalars;
    for (const std::int64_t b : by_use) all += b;
    return all;
  }
  /// What nothing lives in, below the highest place that is in use.
  constexpr std::int64_t gaps() const { return highest_place - living; }
  /// Over a step the most of this is `Plan::peak_memory`.
  constexpr std::int64_t with_gaps() const { return bytes() + gaps(); }

  constexpr void hold(const Allocation& a) {
    by_use[static_cast<int>(a.use)] += a.bytes;
    living += a.bytes;
    if (a.offset + a.bytes > highest_place) highest_place = a.offset + a.bytes;
  }
};
/// What is held all the time: parameters, states, inputs and scalars.
constexpr Moment at_rest(const Plan& plan, int event = 0) {
  Moment m{event};
  for (const Use held : {Use::parameters, Use::optimizer_state, Use::inputs})
    m.by_use[static_cast<int>(held)] = plan.memory.of(held);
  m.scalars = plan.memory.blocks[static_cast<int>(MemoryBlock::scalars)];
  return m;
}
/// `living`: what allocations(plan) gave.
constexpr Moment moment(const Plan& plan, const Vector<Allocation>& living, int event) {
  Moment m = at_rest(plan, event);
  for (const Allocation& a : living)
    if (a.first <= event && event <= a.last) m.hold(a);
  return m;
}
/// The memory of a rank over a step: the moment of each event, and that of the end.
constexpr Vector<Moment> moments(const Plan& plan) {
  Vector<Moment> all;
  all.resize(static_cast<int>(plan.events.size()) + 1, at_rest(plan));
  for (int e = 0; e < all.size(); ++e) all[e].event = e;
  for (const Allocation& a : allocations(plan))
    for (int e = a.first; e <= a.last; ++e) all[e].hold(a);
  return all;
}
/// The first moment at which a rank holds most; of the events that `counts(event)` is true of, where there is one.
template <class Counts>
constexpr Moment fullest(const Plan& plan, const Vector<Moment>& moments, Counts counts) {
  Moment most = at_rest(plan);
  bool any = false;
  for (const Moment& m : moments) {
    if (!counts(m.event) || (any && m.bytes() <= most.bytes())) continue;
    most = m;
    any = true;
  }
  return most;
}
constexpr Moment fullest(const Plan& plan) {
  return fullest(plan, moments(plan), [](int) { return true; });
}
/// Of a phase; the end of the step is in none.
constexpr Moment fullest(const Plan& plan, Phase phase) {
  return fullest(plan, moments(plan), [&](int event) {
    return event < static_cast<int>(plan.events.size()) &&
           plan.graph.node(plan.events[static_cast<std::size_t>(event)].node).phase == phase;
  });
}

/// What the kernels of an event work in at most, beside tensors.
constexpr std::int64_t scratch(const Plan& plan, int event, const DeviceAccount& device = account::on_cpu) {
  account::Scratch most;
  if (event < static_cast<int>(plan.events.size()))
    if (const Event& e = plan.events[static_cast<std::size_t>(event)]; e.kind == EventKind::compute)
      each_node(plan.graph, e, [&](int n) { most.grow(device.scratch(plan.extents_of(plan.graph.node(n)))); });
  return most.bytes();
}

/// Bytes that are held for one use, charged to one member of the program: parameters and inputs to themselves, a state
/// to its parameter, any other value to the member that made it.
struct Charge {
  int member = -1;  ///< of the graph; -1: charged to none
  Use use = Use::temporaries;
  std::int64_t bytes = 0;
};
/// The member that an allocation is charged to, or -1: of a collective's buffer, that of the collective.
constexpr int charged_member(const GraphView& g, const Allocation& a) {
  return a.owner < 0 ? int{g.node(-1 - a.owner).member} : int{g.value(a.owner).member};
}
/// What is held at a moment, by member and use; together its bytes without the scalars. `living`: what
/// allocations(plan) gave.
constexpr Vector<Charge> charges(const Plan& plan, const Vector<Allocation>& living, int event) {
  const GraphView& g = plan.graph;
  Vector<Charge> all;
  const auto add = [&](int member, Use use, std::int64_t bytes) {
    for (Charge& c : all)
      if (c.member == member && c.use == use) {
        c.bytes += bytes;
        return;
      }
    all.push_back({member, use, bytes});
  };
  for (int m = 0; m < static_cast<int>(g.members.size()); ++m) {
    const Member& member = g.member(m);
    const MemoryBlock block = plan.storage[static_cast<std::size_t>(int{member.value})].block;
    if (block == MemoryBlock::none || of_host(block)) continue;
    add(member.of >= 0 ? int{member.of} : m,
        member.role == Role::parameter ? Use::parameters
        : member.role == Role::state   ? Use::optimizer_state
                                       : Use::inputs,
        aligned(local_bytes(member.type, plan.mesh)));
  }
  for (const Allocation& a : living)
    if (a.first <= event && event <= a.last) add(charged_member(g, a), a.use, a.bytes);
  return all;
}
/// Bytes of all uses that are charged to one member. `path`: as in `blocks.*.up`.
constexpr std::int64_t charged(const Plan& plan, std::string_view path, int event) {
  std::int64_t bytes = 0;
  for (const Charge& c : charges(plan, allocations(plan), event))
    if (c.member >= 0 && plan.graph.path(c.member) == path) bytes += c.bytes;
  return bytes;
}

}  // namespace parallel::internals

namespace parallel {
using internals::charged;
using internals::fullest;
using internals::Moment;
using internals::moments;
}  // namespace parallel
