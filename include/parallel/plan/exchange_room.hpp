// What exchanges need beside operand and result: room for padding, and to bring slices of an inner dimension together.
#pragma once
#include <parallel/plan/storage.hpp>

namespace parallel::internals {

/// A gather from a flat split, or a reduction or slice to one: `outer` times a whole of `whole` elements, of which each
/// of n ranks holds `share`, the last of them with padding.
struct FlatExchange {
  std::int64_t outer = 1, whole = 1, n = 1, share = 1;
  int bytes = 4;  ///< of an element

  constexpr FlatExchange(const GraphView& g, const Node& node, const Mesh& mesh) {
    const Transition& t = node.transition;
    const bool gathers = t.from.flat;
    const Type& split = g.value(gathers ? node.operands[0] : int{node.result}).type;
    const LocalPart part = local_part(split.layout, mesh);
    for (int d = 0; d < part.flat_from; ++d) outer *= part.size[d];
    n = mesh.extent(t.axes);
    share = part.size[part.flat_from] * part.each;
    whole = local_elements(g.value(gathers ? int{node.result} : node.operands[0]).type.layout, mesh) / outer;
    bytes = bytes_of(split.dtype);
  }
  constexpr std::int64_t padded() const { return aligned(outer * n * share * bytes); }
  constexpr bool pads() const { return n * share != whole; }
  constexpr bool packs() const { return outer > 1 && n > 1; }
  /// What it works in beside its operand and result: what is padded, then what is brought together.
  constexpr std::int64_t room() const { return (pads() ? padded() : 0) + (packs() ? padded() : 0); }
};

/// An all-to-all between slices of the first dimension, whole matrices, of which each of n ranks holds `share` with
/// padding, and parts of all of them: of a dimension, or of their flat views, which are padded, too.
struct SliceExchange {
  std::int64_t n = 1, share = 1, slices = 1;  ///< slices: of what the n ranks have together
  std::int64_t slice = 1, part = 1;           ///< elements of one, and of a rank's part of it
  bool gathers = false;                       ///< from parts to slices
  int bytes = 4;

  constexpr SliceExchange(const GraphView& g, const Node& node, const Mesh& mesh) {
    const Transition& t = node.transition;
    gathers = t.to.alone;
    const int whole = gathers ? int{node.result} : node.operands[0],
              parts = gathers ? node.operands[0] : int{node.result};
    const LocalPart of_whole = local_part(g.value(whole).type.layout, mesh),
                    of_parts = local_part(g.value(parts).type.layout, mesh);
    n = mesh.extent(t.axes);
    share = of_whole.size[0];
    slice = of_whole.each;
    slices = of_parts.size[0];
    for (int d = 1; d < of_parts.size.size(); ++d) part *= of_parts.size[d];
    bytes = bytes_of(g.value(whole).type.dtype);
  }
  /// Elements that each rank sends and takes, with padding.
  constexpr std::int64_t elements() const { return n * share * part; }
  constexpr bool pads_slices() const { return n * share != slices; }
  constexpr bool pads_parts() const { return n * part != slice; }
  constexpr std::int64_t padded() const { return aligned(elements() * bytes); }
  /// For what is padded before, what is brought together, and what is padded behind.
  constexpr std::int64_t room() const { return ((pads_slices() ? 1 : 0) + (pads_parts() ? 1 : 0) + 1) * padded(); }
};
/// Whether a move is one.
constexpr bool exchanges_slices(const Transition& t) {
  return t.collective == Collective::all_to_all && (t.from.alone || t.to.alone);
}

/// Bytes that a collective needs beside its operand and result, to bring slices of an inner dimension together.
constexpr std::int64_t packing_bytes(const GraphView& g, const Node& node, const Mesh& mesh) {
  const Transition& t = node.transition;
  const std::int64_t before = local_bytes(g.value(node.operands[0]).type, mesh),
                     after = local_bytes(g.value(node.result).type, mesh);
  if (exchanges_slices(t)) return SliceExchange(g, node, mesh).room();
  if (t.from.flat || t.to.flat) return communicates(t.collective) ? FlatExchange(g, node, mesh).room() : 0;
  switch (t.collective) {
    case Collective::all_gather:
    case Collective::gather: return t.from.dim == 0 ? 0 : after;
    case Collective::reduce_scatter:
    case Collective::scatter: return t.to.dim == 0 ? 0 : before;
    case Collective::all_to_all: return 2 * aligned(before);
    default: return 0;
  }
}

}  // namespace parallel::internals
