// What a rank has of a plan's values, and in which events it takes part: of what is At some ranks the others have
// nothing and do nothing.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// Whether a rank has anything of a value in its memory: of what its stage does not need, and of what is At other
/// ranks, it has nothing.
constexpr bool has_part(const Plan& plan, int value, int rank) {
  return plan.storage[static_cast<std::size_t>(value)].block != MemoryBlock::none &&
         holds(plan.graph.value(value).type.layout, plan.mesh, rank, plan.graph.stages);
}

/// From one rank of an axis to another; none (false) of a move that is no message, or one of a pipeline.
struct Message {
  int from = -1, to = -1;
  constexpr explicit operator bool() const { return from >= 0; }
};
constexpr Message message_of(const Transition& t, const Mesh& mesh) {
  if (t.collective != Collective::send || t.along != 0) return {};
  const int n = mesh.extent(t.axes);
  return {first_holder(t.from, n), first_holder(t.to, n)};
}

/// Whether a rank does anything of an event: of what is At other ranks it computes nothing and exchanges nothing, but
/// on the axis on which it comes there or leaves. Stages have events of their own.
constexpr bool takes_part(const Plan& plan, const Event& e, int rank) {
  if (e.kind == EventKind::begin || e.kind == EventKind::end) return true;
  const GraphView& g = plan.graph;
  const Node& node = g.node(e.node);
  const Transition& t = node.transition;
  const bool exchanges = e.kind != EventKind::compute;
  for (const Placed& p : g.value(node.result).type.layout.others)
    if (p.axis != g.stages && !(exchanges && t.axes.contains(p.axis)) &&
        !holds(p.placement, plan.mesh.coordinate(rank, p.axis), plan.mesh.extent(p.axis)))
      return false;
  const Message m = message_of(t, plan.mesh);
  const int here = plan.mesh.coordinate(rank, t.axes);
  return !m || !exchanges || here == m.from || here == m.to;
}

}  // namespace parallel::internals
