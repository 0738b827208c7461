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

/// A part of a flat view, `length` elements of each outer slice from one on.
inline View flat_view(const FlatExchange& flat, const View& of, std::int64_t length, std::int64_t begin = 0) {
  View v;
  v.data = of.data;
  v.dtype = of.dtype;
  v.rank = 2;
  v.size[0] = v.whole[0] = flat.outer;
  v.size[1] = length;
  v.offset[1] = begin;
  v.whole[1] = flat.n * flat.share;
  return v;
}

/// The same of a flat view, which has no dimensions but those before it: `outer` slices of each rank.
template <class World>
void prepare_flat(Instruction<World>& i, const FlatExchange& flat, std::byte* room) {
  const bool gathers = i.exchange.kind == Collective::all_gather;
  const View& whole = gathers ? i.calls[0].results[0] : i.calls[0].operands[0];
  i.exchange.count = flat.outer * flat.n * flat.share;
  (gathers ? i.after : i.before) = {flat.outer, flat.n, flat.share};
  if (flat.pads()) {
    View padded = flat_view(flat, whole, flat.n * flat.share);
    padded.data = room;
    const View own = flat_view(flat, whole, flat.whole);
    (gathers ? i.unpad : i.pad).push_back({.operands = {gathers ? padded : own}, .results = {gathers ? own : padded}});
    room += flat.padded();
  }
  if (flat.packs()) (gathers ? i.received : i.packed) = room;
}

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
  if (t.from.flat || t.to.flat) return prepare_flat(i, FlatExchange(g, node, plan.mesh), room);
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
