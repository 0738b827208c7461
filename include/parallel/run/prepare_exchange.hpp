// What a plan's move is to a communicator: kind, counts, peer or root, and how slices along an inner dimension are
// brought together.
#pragma once
#include <algorithm>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/taking_part.hpp>
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

/// The same of a flat view, which has no dimensions but those before it: `outer` slices of each rank. `has_whole`: this
/// rank has all of them, before or behind.
template <class World>
void prepare_flat(Instruction<World>& i, const FlatExchange& flat, bool gathers, bool has_whole, std::byte* room) {
  const View& whole = gathers ? i.calls[0].results[0] : i.calls[0].operands[0];
  i.exchange.count = flat.outer * flat.n * flat.share;
  if (!has_whole) return;
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

/// The same of slices of the first dimension, whole matrices, and parts of all of them. Padded slices are behind the
/// last; parts lie in each slice one behind the other where they are flat, else as dimension `dim` says.
template <class World>
void prepare_slices(Instruction<World>& i, const SliceExchange& e, const Transition& t, std::byte* room) {
  const View &in = i.calls[0].operands[0], &out = i.calls[0].results[0];
  const View &whole = e.gathers ? out : in, &parts = e.gathers ? in : out;
  const Placement& split = e.gathers ? t.from : t.to;
  const auto boxed = [](const View& of, std::int64_t outer, std::int64_t inner, std::int64_t all) {
    View v;
    v.data = of.data;
    v.dtype = of.dtype;
    v.rank = 2;
    v.size[0] = v.whole[0] = outer;
    v.size[1] = inner;
    v.whole[1] = all;
    return v;
  };
  const auto in_room = [&](View v) {
    v.data = room;
    room += e.padded();
    return v;
  };
  i.exchange.count = e.n * e.elements();
  const std::int64_t outer = split.flat ? e.share : whole.extent(0, split.dim);
  (e.gathers ? i.after : i.before) = Packing{outer, e.n, e.share * e.part / outer};
  if (e.pads_slices()) {  // a box of all elements, so that zeros stand behind
    const View own = boxed(parts, 1, e.slices * e.part, e.elements()),
               padded = in_room(boxed(parts, 1, e.elements(), e.elements()));
    (e.gathers ? i.pad : i.unpad)
        .push_back({.operands = {e.gathers ? own : padded}, .results = {e.gathers ? padded : own}});
  }
  if (e.pads_parts()) {
    const View own = boxed(whole, e.share, e.slice, e.n * e.part),
               padded = in_room(boxed(whole, e.share, e.n * e.part, e.n * e.part));
    (e.gathers ? i.unpad : i.pad)
        .push_back({.operands = {e.gathers ? padded : own}, .results = {e.gathers ? own : padded}});
  }
  (e.gathers ? i.received : i.packed) = room;
}

/// Everything of a start but the addresses, from the views of the move's operand and result. `room`: where slices are
/// packed.
template <class World>
void prepare_exchange(Instruction<World>& i, const Node& node, const Plan& plan, int rank, std::byte* room) {
  const GraphView& g = plan.graph;
  const Transition& t = node.transition;
  const View& in = i.calls[0].operands[0];
  const View& out = i.calls[0].results[0];
  const std::int64_t n = participants(t, plan.mesh);
  const int stages = plan.mesh.extent(t.axes);
  if (t.along != 0)
    i.exchange.peer =
        (plan.mesh.here + (t.collective == Collective::send ? t.along : stages - t.along) + stages) % stages;
  i.exchange.kind = t.collective;
  if (rooted(t.collective)) i.exchange.root = first_holder(to_root(t.collective) ? t.to : t.from, stages);
  if (const Message m = message_of(t, plan.mesh)) {
    const bool sends = plan.mesh.coordinate(rank, t.axes) == m.from;
    i.exchange.kind = sends ? Collective::send : Collective::receive;
    i.exchange.peer = sends ? m.to : m.from;
  }
  // on every rank, before and behind it
  const bool parts = t.collective == Collective::all_to_all || t.collective == Collective::rotate;
  i.exchange.count = parts ? n * in.elements() : std::max(in.elements(), out.elements());
  i.exchange.dtype = in.dtype;
  i.exchange.maximum = t.maximum;
  i.exchange.label = node.member >= 0 ? g.path(node.member).data() : "";
  const Source& line = g.origin(node).source;
  i.exchange.from = {line.file, line.line};
  if (exchanges_slices(t)) return prepare_slices(i, SliceExchange(g, node, plan.mesh), t, room);
  const bool root = plan.mesh.coordinate(rank, t.axes) == i.exchange.root;
  if (t.collective == Collective::all_to_all && t.from.flat != t.to.flat)
    throw CannotRun(
        "a plan moves a part of a dimension to a part of a flat view, which no plan that is derived does; "
        "derive it again");
  if (t.from.flat || t.to.flat)
    return prepare_flat(i, FlatExchange(g, node, plan.mesh), t.from.flat, root || !rooted(t.collective), room);
  if (t.collective == Collective::reduce_scatter || t.collective == Collective::all_to_all ||
      (t.collective == Collective::scatter && root))
    i.before = {in.extent(0, t.to.dim), n, out.extent(t.to.dim, t.to.dim + 1) * in.extent(t.to.dim + 1, in.rank)};
  if (t.collective == Collective::all_gather || (t.collective == Collective::gather && root))
    i.after = {in.extent(0, t.from.dim), n, in.extent(t.from.dim, in.rank)};
  if (t.collective == Collective::all_to_all)
    i.after = {out.extent(0, t.from.dim), n,
               in.extent(t.from.dim, t.from.dim + 1) * out.extent(t.from.dim + 1, out.rank)};
  if (i.before.needed()) i.packed = room;
  if (i.after.needed())
    i.received = t.collective == Collective::all_to_all ? room + aligned(in.elements() * bytes_of(in.dtype)) : room;
}

}  // namespace parallel::internals
