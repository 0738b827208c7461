// How a tensor lies on one axis of the mesh: the five placements and the placement of a gradient.
#pragma once
#include <cstdint>

namespace parallel {

enum class PlacementKind : std::uint8_t { invariant, broadcast, partial, split, at, on_host };
constexpr PlacementKind last_of(PlacementKind) { return PlacementKind::on_host; }

/// One of `Split<d>`, `Broadcast`, `Partial`, `Invariant`, `At<k...>`, or at rest `OnHost`; a value and, by
/// `On<axis, placement>`, part of a type.
struct Placement {
  PlacementKind kind = PlacementKind::invariant;
  int dim = 0;  ///< the dimension that is split; of a flat split the first of those that it takes together
  /// At: bit k is set where coordinate k holds the value; bit 63 is the last one's (axes up to 64 ranks)
  std::uint64_t coordinates = 0;
  /// Split: not of a dimension but of the flat view of `dim` and all behind it, within what other axes leave of them,
  /// padded with zeros until the ranks divide it
  bool flat = false;
  bool alone = false;  ///< flat: of `dim` alone, so that what lies behind it stays whole

  constexpr Placement() = default;
  constexpr Placement(PlacementKind k, int d = 0, std::uint64_t c = 0, bool f = false, bool a = false)
      : kind(k), dim(d), coordinates(c), flat(f), alone(a) {}
  constexpr bool operator==(const Placement&) const = default;
  constexpr bool split() const { return kind == PlacementKind::split; }
  /// Not all ranks have the same of it: before it can be used whole they exchange something.
  constexpr bool apart() const { return split() || kind == PlacementKind::at; }
  constexpr bool whole() const { return kind == PlacementKind::invariant || kind == PlacementKind::broadcast; }
  constexpr bool pending() const { return kind == PlacementKind::partial; }
};

/// Each rank holds its slice of dimension `dim`.
template <int dim>
inline constexpr Placement Split{PlacementKind::split, dim};
/// Each rank holds the whole value and uses it differently; its gradient is Partial.
inline constexpr Placement Broadcast{PlacementKind::broadcast};
/// Each rank holds a term; the value is the sum over the axis.
inline constexpr Placement Partial{PlacementKind::partial};
/// Each rank holds the whole value and uses it identically. What is not annotated is Invariant.
inline constexpr Placement Invariant{PlacementKind::invariant};
/// The ranks with these coordinates hold the whole value, the others nothing. `At<-1>`: the last rank of the axis,
/// however many there are.
template <int... coordinate>
inline constexpr Placement At{PlacementKind::at, 0,
                              ((std::uint64_t{1} << (coordinate < 0 ? 64 + coordinate : coordinate)) | ... | 0)};

namespace internals {
/// Each rank holds its slice of the flat view of all elements, padded with zeros: how a `Stored` parameter lies at
/// rest.
inline constexpr Placement SplitFlat{PlacementKind::split, 0, 0, true};
/// On `host`: each rank has what it has of a value in its host's memory, else in its device's. So lies only what is at
/// rest, and what is computed of nothing but that.
inline constexpr Placement OnHost{PlacementKind::on_host};
/// Each rank holds some of the slices of the first dimension, as many as any other, with zeros behind the last: how
/// matrices are shared out that must stay whole.
inline constexpr Placement SplitPadded{PlacementKind::split, 0, 0, true, true};
constexpr Placement split(int dim) { return {PlacementKind::split, dim}; }
/// The same split of a tensor that has so many dimensions more in front.
constexpr Placement behind(Placement p, int dims) {
  if (p.split()) p.dim += dims;
  return p;
}
constexpr Placement at(int coordinate) { return {PlacementKind::at, 0, std::uint64_t{1} << coordinate}; }

/// Whether the rank with a coordinate, of so many on the axis, holds anything of a value placed `p`. One alone holds
/// everything.
constexpr bool holds(Placement p, int coordinate, int ranks) {
  if (p.kind != PlacementKind::at || ranks == 1) return true;
  return (coordinate < 63 && (p.coordinates >> coordinate & 1) != 0) ||
         (coordinate == ranks - 1 && p.coordinates >> 63 != 0);
}
/// The first that does; `ranks` where none does.
constexpr int first_holder(Placement p, int ranks) {
  int first = 0;
  while (first < ranks && !holds(p, first, ranks)) ++first;
  return first;
}
/// Whether all that a value placed `p` is At are among so many ranks. One alone holds everything.
constexpr bool has_holders(Placement p, int ranks) {
  constexpr std::uint64_t last = std::uint64_t{1} << 63;
  if (p.kind != PlacementKind::at || ranks == 1) return true;
  return p.coordinates != 0 && (ranks >= 63 || (p.coordinates & ~last) >> ranks == 0);
}
}  // namespace internals

/// The placement of the gradient of a value placed `p`: an involution.
constexpr Placement conjugate(Placement p) {
  if (p == Broadcast) return Partial;
  if (p == Partial) return Broadcast;
  return p;
}

}  // namespace parallel
