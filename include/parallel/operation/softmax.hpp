// Softmax over one dimension, which may be split: then two small reductions forward and one backward.
#pragma once
#include <parallel/operation/reduce.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 result
// S, other          S
// S, over           S      exchanges the maximum and the sum of exponentials; backward the inner product of a row
PARALLEL_AHEAD constexpr Signatures softmax_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d)
    if (a.size(0, d) > 1) rows.push_back({{split(d)}, {split(d)}, d == a.ints[0]});
  return rows;
}
PARALLEL_AHEAD constexpr Shaped softmax_shape(const Arguments& a) {
  const Shaped same = same_shape(a);
  if (a.ints[0] < 0 || a.ints[0] >= a.rank(0))
    return {same.results, {Reason::no_such_dimension, {a.ints[0], a.rank(0)}}};
  return same;
}
PARALLEL_AHEAD constexpr void softmax_lower(Lowering&);
PARALLEL_AHEAD constexpr void softmax_gradient(Gradient&);
inline constexpr Operation softmax{
    .name = "softmax", .shape = softmax_shape, .signatures = softmax_table, .lower = softmax_lower};
/// (x, max): the sum over `ints` of exp(x - max)
inline constexpr Operation sum_of_exponentials{
    .name = "sum_of_exponentials", .flops = elements_of_operand, .rate = Rate::functions};
/// (x, max, sum): exp(x - max) / sum
inline constexpr Operation normalized_exponential{
    .name = "normalized_exponential", .gradient = softmax_gradient, .rate = Rate::functions};
/// (y, g): the sum over `ints` of y g
inline constexpr Operation row_product{.name = "row_product", .flops = elements_of_operand};
inline constexpr Operation softmax_derivative{.name = "softmax_gradient"};  ///< (y, g, product): y (g - product)

/// The type of a statistic along dimensions `dims` of something: those dimensions gone, more precise than bf16 and f16.
constexpr Type statistic(const Type& type, const Ints& dims) {
  Type result{precise(type.dtype), type.layout};
  result.layout.dims.count = 0;
  for (int d = 0; d < type.layout.rank(); ++d)
    if (!dims.contains(d)) result.layout.dims.push_back(type.layout.dims[d]);
  return result;
}
constexpr AxisList split_along(const Layout& layout, const Ints& dims) {
  AxisList axes;
  for (const std::int64_t d : dims)
    for (const Axis* a : layout.dims[static_cast<int>(d)]) axes.push_back(a);
  return axes;
}
PARALLEL_AHEAD constexpr void softmax_lower(Lowering& l) {
  const int x = l.operands[0];
  const Type row = statistic(l.type(0), l.ints);
  const int largest = maximum(l, x, row, l.exchanging, l.ints);
  const int own = l.emit(sum_of_exponentials, {x, largest}, {pending_on(row, l.exchanging)}, l.ints);
  l.result = l.emit(normalized_exponential, {x, largest, l.exchange(own, l.exchanging)}, l.results, l.ints);
}
PARALLEL_AHEAD constexpr void softmax_gradient(Gradient& g) {
  const AxisList exchanging = split_along(g.result_type().layout, g.node.ints);
  const Type row = pending_on(statistic(conjugate(g.result_type()), g.node.ints), exchanging);
  const int product = g.exchange(g.emit(row_product, {g.result(), g.cotangent()}, {row}, g.node.ints), exchanging);
  g.give(0, softmax_derivative, {g.result(), g.cotangent(), product}, g.node.ints);
}
}  // namespace operation

/// softmax<1>(x): exponentials over dimension 1 that add up to one.
template <int dim, Distributed X>
constexpr auto softmax(const X& x, Here here = {}) {
  return Apply<operation::softmax, dim>{}(here, x);
}

}  // namespace parallel
