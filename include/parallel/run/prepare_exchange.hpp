// What a plan's move is to a communicator: kind, counts, peer or root, and how slices along an inner dimension are
// brought together.
#pragma once
#include <algorithm>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/instruction.hpp>

namespace parallel::internals {

/// Everything of a start but the addresses, from the views of the move's operand and result. `room`: where slices are
/// packed.
template <class World>
void prepare_exchange(Instruction<World>& i, const Node& node, const Plan& plan, std::byte* room) {
  const GraphView& g = plan.graph;
  const Transition& t = node.transition;
  if (t.collective > Collective::all_to_all && t.along == 0 &&
      (t.collective != Collective::broadcast || g.slots.empty()))
    throw CannotRun("the plan has a " + std::string(name_of(t.collective)) + " of " +
                    text(g.value(node.operands[0]).type) +
                    "; values that only some ranks hold (At) can be planned, not run");
  const View& in = i.calls[0].operands[0];
  const View& out = i.calls[0].results[0];
  const std::int64_t n = participants(t, plan.mesh);
  const int stages = plan.mesh.extent(t.axes);
  if (t.along != 0)
    i.exchange.peer =
        (plan.mesh.here + (t.collective == Collective::send ? t.along : stages - t.along) + stages) % stages;
  if (t.collective == Collective::broadcast)
    while (!holds(t.from, i.exchange.root, stages)) ++i.exchange.root;
  i.exchange.kind = t.collective;
  const bool parts = t.collective == Collective::all_to_all;  // on every rank, before and behind it
  i.exchange.count = parts ? n * in.elements() : std::max(in.elements(), out.elements());
  i.exchange.dtype = in.dtype;
  i.exchange.maximum = t.maximum;
  i.exchange.label = node.member >= 0 ? g.path(node.member).data() : "";
  const Source& line = g.origin(node).source;
  i.exchange.from = {line.file, line.line};
  if (t.collective == Collective::reduce_scatter || t.collective == Collective::all_to_all)
    i.before = {in.extent(0, t.to.dim), n, out.extent(t.to.dim, t.to.dim + 1) * in.extent(t.to.dim + 1, in.rank)};
  if (t.collective == Collective::all_gather) i.after = {in.extent(0, t.from.dim), n, in.extent(t.from.dim, in.rank)};
  if (t.collective == Collective::all_to_all)
    i.after = {out.extent(0, t.from.dim), n,
               in.extent(t.from.dim, t.from.dim + 1) * out.extent(t.from.dim + 1, out.rank)};
  if (i.before.needed()) i.packed = room;
  if (i.after.needed())
    i.received = t.collective == Collective::all_to_all ? room + aligned(in.elements() * bytes_of(in.dtype)) : room;
}

}  // namespace parallel::internals
