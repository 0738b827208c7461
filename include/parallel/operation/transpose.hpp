// The dimensions of a tensor in another order.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                result
// S(order[d])      S(d)
// P                P
PARALLEL_AHEAD constexpr Shaped transpose_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  if (a.ints.size() != a.rank(0)) return {{result}, {Reason::transposed_order, {a.rank(0), a.ints.size()}}};
  for (int i = 0; i < a.rank(0); ++i) {
    const std::int64_t d = a.ints[i];
    if (d < 0 || d >= a.rank(0)) return {{result}, {Reason::no_such_dimension, {d, a.rank(0)}}};
    for (int j = 0; j < i; ++j)
      if (a.ints[j] == d) return {{result}, {Reason::no_permutation, {d, a.rank(0)}}};
    result.layout.dims.push_back(Dim(a.size(0, static_cast<int>(d))));
  }
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures transpose_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast), uniform_row(1, 1, Partial)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, static_cast<int>(a.ints[d])) > 1) rows.push_back({{split(static_cast<int>(a.ints[d]))}, {split(d)}});
  return rows;
}
PARALLEL_AHEAD constexpr void transpose_gradient(Gradient& g);
inline constexpr Operation transpose{.name = "transpose",
                                     .shape = transpose_shape,
                                     .signatures = transpose_table,
                                     .gradient = transpose_gradient,
                                     .view = true};
PARALLEL_AHEAD constexpr void transpose_gradient(Gradient& g) {
  Ints inverse;
  inverse.count = g.node.ints.size();
  for (int d = 0; d < inverse.count; ++d) inverse[static_cast<int>(g.node.ints[d])] = d;
  g.give(0, transpose, {g.cotangent()}, inverse);
}
}  // namespace operation

/// `transpose<1, 0, 2>(x)`: dimension d of the result is dimension order[d] of x.
template <int... order, Distributed X>
requires(sizeof...(order) > 0) constexpr auto transpose(const X& x, Here here = {}) {
  constexpr bool kept = [](int next = 0) { return ((order == next++) && ...); }();
  if constexpr (kept && sizeof...(order) > 1 && sizeof...(order) == X::type.layout.rank())
    return internals::mistaken<Reason::order_kept, X>();
  else
    return Apply<operation::transpose, order...>{}(here, x);
}
/// The transpose of a matrix.
template <Distributed X>
constexpr auto transpose(const X& x, Here here = {}) {
  return Apply<operation::transpose, 1, 0>{}(here, x);
}

}  // namespace parallel
