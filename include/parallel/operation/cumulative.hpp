// Sums of all elements up to each, along a dimension.
#pragma once
#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 result
// S, other          S
// P                 P
// S, along          no row: it is gathered before
PARALLEL_AHEAD constexpr Signatures along_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, d) > 1 && d != a.ints[0]) rows.push_back({{split(d)}, {split(d)}});
  return rows;
}
PARALLEL_AHEAD constexpr Signatures cumulative_table(const Arguments& a) {
  Signatures rows = along_table(a);
  rows.push_back(uniform_row(1, 1, Partial));
  return rows;
}
PARALLEL_AHEAD constexpr void cumulative_gradient(Gradient&);
/// ints: the dimension, and whether the sums begin at its end.
inline constexpr Operation cumulative_sum{
    .name = "cumulative_sum", .shape = softmax_shape, .signatures = cumulative_table, .gradient = cumulative_gradient};
/// What an element is in the sum of it goes to all up to itself: summed from the other end.
PARALLEL_AHEAD constexpr void cumulative_gradient(Gradient& g) {
  g.give(0, cumulative_sum, {g.cotangent()}, {g.node.ints[0], 1 - g.node.ints[1]});
}
}  // namespace operation

/// cumulative_sum<1>(x): each element and all before it along dimension 1. Sums are taken in double; those of bf16 and
/// f16 are rounded once.
template <int dim, Distributed X>
constexpr auto cumulative_sum(const X& x, Here here = {}) {
  return Apply<operation::cumulative_sum, dim, 0>{}(here, x);
}

}  // namespace parallel
