// The logarithm of a softmax over one dimension, which may be split.
#pragma once
#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 result
// S, other          S
// S, over           S      exchanges the maximum and the sum of exponentials; backward the sum of the gradient
PARALLEL_AHEAD constexpr void log_softmax_lower(Lowering&);
PARALLEL_AHEAD constexpr void log_softmax_gradient(Gradient&);
inline constexpr Operation log_softmax{
    .name = "log_softmax", .shape = softmax_shape, .signatures = softmax_table, .lower = log_softmax_lower};
/// (x, max, sum): x - max - log sum
inline constexpr Operation normalized_logarithm{.name = "normalized_logarithm", .gradient = log_softmax_gradient};
/// (y, g, sum of g): g - exp(y) sum
inline constexpr Operation log_softmax_derivative{.name = "log_softmax_gradient", .rate = Rate::functions};

PARALLEL_AHEAD constexpr void log_softmax_lower(Lowering& l) {
  const int x = l.operands[0];
  const Type row = statistic(l.type(0), l.ints);
  const int largest = maximum(l, x, row, l.exchanging, l.ints);
  const int own = l.emit(sum_of_exponentials, {x, largest}, {pending_on(row, l.exchanging)}, l.ints);
  l.result = l.emit(normalized_logarithm, {x, largest, l.exchange(own, l.exchanging)}, l.results, l.ints);
}
PARALLEL_AHEAD constexpr void log_softmax_gradient(Gradient& g) {
  const AxisList exchanging = split_along(g.result_type().layout, g.node.ints);
  const Type row = pending_on(statistic(conjugate(g.result_type()), g.node.ints), exchanging);
  const int total = g.exchange(g.emit(sum, {g.cotangent()}, {row}, g.node.ints, 1), exchanging);
  g.give(0, log_softmax_derivative, {g.result(), g.cotangent(), total}, g.node.ints);
}
}  // namespace operation

/// log_softmax<1>(x): the logarithm of softmax<1>(x), which stays a number where that is too small for one.
template <int dim, Distributed X>
constexpr auto log_softmax(const X& x, Here here = {}) {
  return Apply<operation::log_softmax, dim>{}(here, x);
}

}  // namespace parallel
