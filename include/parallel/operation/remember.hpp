// What a program remembers from run to run: a tensor with room along one dimension, in which every run writes its part.
// A key-value cache.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x               position   result
// S, other        B          S
// P               B          P        by name only: the terms would be summed in every run; the sum is completed once
PARALLEL_AHEAD constexpr Shaped remember_shape(const Arguments& a) {
  Shaped same = same_shape(a);
  if (a.ints[0] < 0 || a.ints[0] >= a.rank(0))
    return {same.results, {Reason::no_such_dimension, {a.ints[0], a.rank(0)}}};
  const int dim = static_cast<int>(a.ints[0]);
  if (a.ints[1] < a.size(0, dim)) return {same.results, {Reason::slice_range, {0, a.size(0, dim), a.ints[1]}}};
  same.results[0].layout.dims[dim] = Dim(a.ints[1]);
  if (a.rank(1) != 0) return {same.results, {Reason::wrong_rank, {a.rank(1), 0}}};
  return {same.results, whole_numbers(a, 1)};
}
PARALLEL_AHEAD constexpr Signatures remember_table(const Arguments& a) {
  Signatures rows{uniform_row(2, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (d != a.ints[0] && a.size(0, d) > 1) rows.push_back({{split(d), Broadcast}, {split(d)}});
  rows.push_back({{Partial, Broadcast}, {Partial}, false, true});
  return rows;
}
PARALLEL_AHEAD constexpr void remember_lower(Lowering&);
/// ints: the dimension, and the room along it.
inline constexpr Operation remember{.name = "remember",
                                    .shape = remember_shape,
                                    .signatures = remember_table,
                                    .lower = remember_lower,
                                    .remembers = true};
/// (memory, x, position): the memory with x at `position` of dimension ints[0], in its storage.
inline constexpr Operation write{.name = "write", .updates = true, .reads_part_of = 0};

/// The memory lies as x does, and belongs to the member that made x. In Layers every layer has its own.
PARALLEL_AHEAD constexpr void remember_lower(Lowering& l) {
  const int of = l.trace.member, origin = l.trace.origin;
  Graph& graph = l.trace.graph;
  Member described;
  int number = 1;
  for (const Member& m : graph.members) number += m.role == Role::state && m.of == of;
  char digits[10]{};
  int first = 10;
  for (int n = number; number > 1 && n > 0; n /= 10) digits[--first] = static_cast<char>('0' + n % 10);
  const std::string_view counted(digits + first, static_cast<std::size_t>(10 - first));
  if (of >= 0)
    described.path = graph.name(graph.members[of].path, {".memory", counted});
  else
    described.path = graph.name({}, {"memory", counted});
  described.role = Role::state;
  described.type = l.results[0];
  described.of = of;
  described.initializer = {Initializer::Kind::constant, 0, false};
  const bool in_layers = goes_back(graph.regions[l.trace.region].kind);
  if (in_layers) {
    const Region& layers = graph.regions[l.trace.region];
    described.layers = layers.count;
    described.type.layout =
        with_leading(described.type.layout, layers.staged ? Dim(layers.count) / *graph.stages : Dim(layers.count));
  }
  const int number_of_member = graph.members.size();
  const int memory = l.trace.declare(parameter, described, Kind::activation, false);
  if (l.trace.training) graph.misused = number_of_member;
  l.trace.origin = origin;
  const int own = in_layers ? l.trace.layer_of(memory, l.trace.region) : memory;
  l.trace.member = of;
  l.result = l.emit(write, {own, l.operands[0], l.operands[1]}, l.results, l.ints);
  graph.members[number_of_member].updated = l.result;
}
}  // namespace operation

/// What earlier runs of an evaluation gave and, at `position` of dimension `dim`, what this one gives: x[..., n, ...]
/// -> [..., room, ...]. It begins with zeros, and what was never written there stays so. `position` is a whole number
/// without dimensions. What would lie outside the room is not kept; attention_from gives no number to a query that
/// stands there.
template <int dim, std::int64_t room, Distributed X, Distributed P>
constexpr auto remember(const X& x, const P& position, Here here = {}) {
  return Apply<operation::remember, dim, room>{}(here, x, position);
}

}  // namespace parallel
