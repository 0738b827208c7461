// From one placement to another on one axis: which collective moves the value, and what it costs.
#pragma once
#include <bit>
#include <iterator>

#include <parallel/algebra/mesh.hpp>

namespace parallel {

enum class Collective : std::uint8_t {
  retype,    ///< nothing moves, nothing is computed
  slice,     ///< each rank keeps its own part
  zero_pad,  ///< each rank puts its part between zeros
  mask,      ///< the first rank keeps the value, the others zeros
  drop,      ///< ranks that are not asked to hold the value forget it
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  rotate,  ///< each rank's part goes to the next of the ring, the last one's to the first
  send,
  broadcast,
  reduce,
  gather,
  scatter,
  receive,  ///< the other end of a send, where a schedule asks for the two one by one
  offload,  ///< each rank copies what it has from its device to its host
  fetch,    ///< and back
  never,    ///< no transition
};
constexpr Collective last_of(Collective) { return Collective::never; }

namespace internals {
/// What is known of a collective, or of a move for which nothing travels.
struct CollectiveKind {
  std::string_view name;
  /// when it is made of the moves of one operand, so that it shrinks before it travels: slice, reduce-scatter,
  /// all-to-all, retype, all-reduce, gather
  int order;
  bool reduces = false;                ///< what the ranks hold is added
  double (*sent)(double n) = nullptr;  ///< by each of a ring of n ranks, in full messages; none: nothing travels
  int (*steps)(int n) = nullptr;       ///< of the ring, each of which costs its latency
};
namespace ring {
constexpr double parts(double n) { return (n - 1) / n; }
constexpr double parts_twice(double n) { return 2 * (n - 1) / n; }
constexpr double parts_of_parts(double n) { return (n - 1) / (n * n); }
constexpr double part(double n) { return n > 1 ? 1 / n : 0; }
constexpr double whole(double n) { return n > 1 ? 1 : 0; }
constexpr double nothing(double) { return 0; }
constexpr double copied(double) { return 1; }
constexpr int around(int n) { return n - 1; }
constexpr int twice_around(int n) { return 2 * (n - 1); }
constexpr int one(int) { return 1; }
}  // namespace ring
/// By Collective: a new one is a row.
inline constexpr CollectiveKind collectives[] = {
    {"retype", 3},
    {"slice", 0},
    {"zero_pad", 5},
    {"mask", 3},
    {"drop", 0},
    {"all_gather", 5, false, ring::parts, ring::around},
    {"all_reduce", 4, true, ring::parts_twice, ring::twice_around},
    {"reduce_scatter", 1, true, ring::parts, ring::around},
    {"all_to_all", 2, false, ring::parts_of_parts, ring::around},
    {"rotate", 2, false, ring::part, ring::one},
    {"send", 2, false, ring::whole, ring::one},
    {"broadcast", 5, false, ring::whole, ring::around},
    {"reduce", 4, true, ring::whole, ring::around},
    {"gather", 5, false, ring::parts, ring::around},
    {"scatter", 1, false, ring::parts, ring::around},
    {"receive", 2, false, ring::nothing, ring::one},  // who sends counts the bytes
    {"offload", 5, false, ring::copied, ring::one},
    {"fetch", 0, false, ring::copied, ring::one},
    {"never", 5},
};
static_assert(std::size(collectives) == static_cast<std::size_t>(last_of(Collective{})) + 1);
constexpr const CollectiveKind& known(Collective c) { return collectives[static_cast<int>(c)]; }

/// Whether bytes travel, between ranks or between a rank's memories.
constexpr bool communicates(Collective c) { return known(c).sent != nullptr; }
/// Whether they travel between a rank's memories.
constexpr bool copies(Collective c) { return c == Collective::offload || c == Collective::fetch; }
/// Whether what the ranks hold is added.
constexpr bool reduces(Collective c) { return known(c).reduces; }
/// Whether one rank, the root, has what the others do not, gets it, or either.
constexpr bool from_root(Collective c) { return c == Collective::broadcast || c == Collective::scatter; }
constexpr bool to_root(Collective c) { return c == Collective::reduce || c == Collective::gather; }
constexpr bool rooted(Collective c) { return from_root(c) || to_root(c); }
/// Bytes that a ring sends per rank. `message` is the full tensor within the other axes' shard, n the ranks of the
/// axis.
constexpr double sent(Collective c, double message, int n) { return communicates(c) ? known(c).sent(n) * message : 0; }
}  // namespace internals

constexpr std::string_view name_of(Collective c) { return internals::known(c).name; }

namespace internals {
struct TransitionRow {
  Placement from, to;
  Collective collective;
  bool by_name;  ///< never derived: written by someone who knows that the ranks' values are equal
};

/// Every transition between ranks. `Split<0>` and `Split<1>` stand for any two different dimensions, `At<0>` and
/// `At<1>` for any two sets.
// clang-format off
inline constexpr TransitionRow transitions[] = {
    // from      to          collective                   each rank before |-> after
    {Split<0>,   Broadcast,  Collective::all_gather,     false},  // [a] [b]      |-> [a;b] [a;b]
    {Split<0>,   Invariant,  Collective::all_gather,     false},  // [a] [b]      |-> [a;b] [a;b]
    {Split<0>,   Split<1>,   Collective::all_to_all,     false},  // [a b] [c d]  |-> [a;c] [b;d]
    {Split<0>,   Partial,    Collective::zero_pad,       false},  // [a] [b]      |-> [a;0] [0;b]
    {Broadcast,  Split<0>,   Collective::slice,          false},  // [a;b] [a;b]  |-> [a] [b]
    {Invariant,  Split<0>,   Collective::slice,          false},  // [a;b] [a;b]  |-> [a] [b]
    {Partial,    Broadcast,  Collective::all_reduce,     false},  // [a] [b]      |-> [a+b] [a+b]
    {Partial,    Invariant,  Collective::all_reduce,     false},  // [a] [b]      |-> [a+b] [a+b]
    {Partial,    Split<0>,   Collective::reduce_scatter, false},  // [a;c] [b;d]  |-> [a+b] [c+d]
    {Invariant,  Broadcast,  Collective::retype,         false},  // [a] [a]      |-> [a] [a]
    {Broadcast,  Invariant,  Collective::retype,         true},   // [a] [a]      |-> [a] [a]
    {Broadcast,  Partial,    Collective::mask,           false},  // [a] [a]      |-> [a] [0]
    {Invariant,  Partial,    Collective::mask,           false},  // [a] [a]      |-> [a] [0]
    {At<0>,      At<1>,      Collective::send,           false},  // [a] []       |-> [] [a]
    {At<0>,      Invariant,  Collective::broadcast,      false},  // [a] []       |-> [a] [a]
    {Invariant,  At<0>,      Collective::drop,           false},  // [a] [a]      |-> [a] []
    {At<0>,      Broadcast,  Collective::broadcast,      false},  // [a] []       |-> [a] [a]
    {Partial,    At<0>,      Collective::reduce,         false},  // [a] [b]      |-> [a+b] []
    {Broadcast,  At<0>,      Collective::drop,           false},  // [a] [a]      |-> [a] []
    {At<0>,      Partial,    Collective::zero_pad,       false},  // [a] []       |-> [a] [0]
    {Split<0>,   At<0>,      Collective::gather,         false},  // [a] [b]      |-> [a;b] []
    {At<0>,      Split<0>,   Collective::scatter,        false},  // [a;b] []     |-> [a] [b]
};
// clang-format on

/// What brings to several ranks what the table brings to one.
constexpr Collective to_several(Collective c) {
  return c == Collective::send     ? Collective::broadcast
         : c == Collective::reduce ? Collective::all_reduce
         : c == Collective::gather ? Collective::all_gather
                                   : c;
}
/// The row of the table for a move between two different placements; `never` where there is none. To fewer of the ranks
/// that hold the value nothing moves.
constexpr Collective collective(Placement from, Placement to) {
  if (to == OnHost && from == Invariant) return Collective::offload;
  if (from == OnHost && to == Invariant) return Collective::fetch;
  const bool at_some = to.kind == PlacementKind::at;
  if (at_some && from.kind == to.kind && (to.coordinates & ~from.coordinates) == 0) return Collective::drop;
  for (const TransitionRow& row : transitions)
    if (row.from.kind == from.kind && row.to.kind == to.kind)
      return at_some && std::popcount(to.coordinates) > 1 ? to_several(row.collective) : row.collective;
  return Collective::never;
}
}  // namespace internals

/// One move of a value on a set of axes (several only where one all-reduce completes a sum over all of them).
struct Transition {
  Collective collective = Collective::retype;
  AxisList axes{};
  Placement from{}, to{};
  DType reduction = DType::f32;  ///< the element type in which terms are added
  /// the maximum of the ranks' values instead of their sum (a kernel's own statistics, no placement)
  bool maximum = false;
  Placement among{};  ///< At: only these coordinates of the axis take part
  /// an edge between the stages of a pipeline: 1 to the next stage, -1 to the one before; 0: none
  int along = 0;
  int chunks = 1;  ///< of an edge: how many slices of the layers each stage has
};

namespace internals {
/// How many ranks take part in one.
constexpr int participants(const Transition& t, const Mesh& mesh) {
  if (t.along != 0) return 2;
  const int all = mesh.extent(t.axes);
  if (t.among.kind != PlacementKind::at) return all;
  int n = 0;
  for (int k = 0; k < all; ++k) n += holds(t.among, k, all) ? 1 : 0;
  return n;
}

/// Bytes that go out of one rank of an axis, and come in.
struct Traffic {
  double sent = 0, received = 0;
  constexpr bool operator==(const Traffic&) const = default;
};
/// Of one move: where one rank, the root, has or gets what the others do not, all of it goes through its link; else
/// each sends and receives as much as in a ring. `message` and n as of `sent`.
constexpr Traffic traffic_of(const Transition& t, double message, int coordinate, int n) {
  const bool from = coordinate == first_holder(t.from, n), to = coordinate == first_holder(t.to, n);
  const double others = n - 1, part = message / n;
  switch (t.along != 0 ? Collective::retype : t.collective) {
    case Collective::broadcast: return from ? Traffic{others * message, 0} : Traffic{0, message};
    case Collective::scatter: return from ? Traffic{others * part, 0} : Traffic{0, part};
    case Collective::reduce: return to ? Traffic{0, others * message} : Traffic{message, 0};
    case Collective::gather: return to ? Traffic{0, others * part} : Traffic{part, 0};
    case Collective::send: return {from ? message : 0, to ? message : 0};
    default: break;
  }
  const double of_ring = sent(t.collective, message, n);
  return {of_ring, of_ring};
}
/// Whether it leads to one rank of an axis or away from one.
constexpr bool one_sided(const Transition& t) {
  return t.along == 0 && (rooted(t.collective) || t.collective == Collective::send);
}
}  // namespace internals

}  // namespace parallel
