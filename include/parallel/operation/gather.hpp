// Elements picked along one dimension by an index of each, and elements added to those that an index names: gather and
// scatter_add, each the other's gradient.
#pragma once
#include <parallel/operation/add.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// gather: index   x        result   scattered: index   source   result
// S, along        B        S                   S       S        P         each rank adds up its own terms
// B               S, along P                                              each rank picks of what it holds, else zeros
// S, other        S        S                   S       S        S
// B               P        P                   B       P        P
// Along: the dimension in which elements are picked; index and x have all others in common.

/// Whether an index is of whole numbers and has the extents of x but along a dimension.
constexpr Refusal picks(const Arguments& a, int dim) {
  if (a.rank(0) != a.rank(1)) return {Reason::wrong_rank, {a.rank(0), a.rank(1)}};
  if (dim < 0 || dim >= a.rank(1)) return {Reason::no_such_dimension, {dim, a.rank(1)}};
  for (int d = 0; d < a.rank(0); ++d)
    if (d != dim && a.size(0, d) != a.size(1, d)) return {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}};
  return whole_numbers(a, 0);
}
PARALLEL_AHEAD constexpr Shaped gather_shape(const Arguments& a) {
  const Refusal ill = picks(a, static_cast<int>(a.ints[0]));
  return {{{a.types[1].dtype, a.types[0].layout.unplaced()}}, ill ? ill : counted(a, 1, a.ints[0])};
}
/// Rows that split a dimension in common, and those that `along` adds.
constexpr Signatures picking_rows(const Arguments& a, const Signatures& along) {
  Signatures rows{uniform_row(2, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (d != a.ints[0] && a.size(0, d) > 1) rows.push_back(uniform_row(2, 1, split(d)));
  for (const Signature& row : along) rows.push_back(row);
  rows.push_back({{Broadcast, Partial}, {Partial}});
  return rows;
}
PARALLEL_AHEAD constexpr Signatures gather_table(const Arguments& a) {
  const int dim = static_cast<int>(a.ints[0]);
  Signatures along;
  if (a.size(0, dim) > 1) along.push_back({{split(dim), Broadcast}, {split(dim)}});
  if (a.size(1, dim) > 1) along.push_back({{Broadcast, split(dim)}, {Partial}});
  return picking_rows(a, along);
}
PARALLEL_AHEAD constexpr void gather_gradient(Gradient&);
/// (index, x), along dimension ints[0]. Where ints[1] says 1, what an index outside picks is 0, as backward, where it
/// was added nowhere; else no number.
inline constexpr Operation gather{.name = "gather",
                                  .shape = gather_shape,
                                  .signatures = gather_table,
                                  .gradient = gather_gradient,
                                  .flops = no_flops};

PARALLEL_AHEAD constexpr Shaped scattered_shape(const Arguments& a) {
  Type result{a.types[1].dtype, a.types[1].layout.unplaced()};
  if (const Refusal refusal = picks(a, static_cast<int>(a.ints[0]))) return {{result}, refusal};
  const int dim = static_cast<int>(a.ints[0]);
  if (a.size(0, dim) != a.size(1, dim)) return {{result}, {Reason::shapes_differ, {a.size(0, dim), a.size(1, dim)}}};
  result.layout.dims[dim] = Dim(a.ints[1]);
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures scattered_table(const Arguments& a) {
  const int dim = static_cast<int>(a.ints[0]);
  Signatures along;
  if (a.size(0, dim) > 1) along.push_back({{split(dim), split(dim)}, {Partial}});
  return picking_rows(a, along);
}
PARALLEL_AHEAD constexpr void scattered_gradient(Gradient& g) {
  g.give(1, gather, {g.operand(0), g.cotangent()}, {g.node.ints[0], 1});
}
/// (index, source): the elements of source added up where the index says, along dimension ints[0] of extent ints[1];
/// zeros elsewhere.
inline constexpr Operation scattered{
    .name = "scattered", .shape = scattered_shape, .signatures = scattered_table, .gradient = scattered_gradient};
PARALLEL_AHEAD constexpr void gather_gradient(Gradient& g) {
  const int dim = static_cast<int>(g.node.ints[0]);
  g.give(1, scattered, {g.operand(0), g.cotangent()}, {dim, g.type(1).layout.dims[dim].size});
}
}  // namespace operation

/// gather<1>(x, index)[i][j] is x[i][index[i][j]], as PyTorch's: whole numbers from 0 to the extent of x along the
/// dimension less 1, of any number along it. An index outside gives no number.
template <int dim, Distributed X, Distributed I>
constexpr auto gather(const X& x, const I& index, Here here = {}) {
  return Apply<operation::gather, dim>{}(here, index, x);
}
/// x, and source[i][j] added to its element [i][index[i][j]], for scatter_add<1>(x, index, source), as PyTorch's. What
/// an index outside names is added nowhere.
template <int dim, Distributed X, Distributed I, Distributed S>
constexpr auto scatter_add(const X& x, const I& index, const S& source, Here here = {}) {
  constexpr int rank = X::type.layout.rank();
  constexpr std::int64_t extent = dim >= 0 && dim < rank ? X::type.layout.dims[dim < rank ? dim : 0].size : 1;
  return Apply<operation::add>{}(here, x, Apply<operation::scattered, dim, extent>{}(here, index, source));
}

}  // namespace parallel
