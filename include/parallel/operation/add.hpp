// Sums and differences, element by element with broadcasting: x + y, x - y.
#pragma once
#include <parallel/operation/scale.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   y   result
// S   S   S       every dimension of the result that is not repeated
// S   B   S       y is repeated along the split dimension; its gradient is Partial
// P   P   P       a parameter that is added joins the sum: I -> P, on one rank only

PARALLEL_AHEAD constexpr void add_gradient(Gradient& g) {
  give_repeated(g, 0, g.cotangent());
  give_repeated(g, 1, g.cotangent());
}
PARALLEL_AHEAD constexpr void subtract_gradient(Gradient& g) {
  give_repeated(g, 0, g.cotangent());
  if (g.wants(1)) give_repeated(g, 1, g.emit(scale, {g.cotangent()}, {conjugate(g.result_type())}, {}, -1));
}
inline constexpr Operation add = function_of_two("add", sum_table, add_gradient);
inline constexpr Operation subtract = function_of_two("subtract", sum_table, subtract_gradient);
}  // namespace operation

/// x + y; shapes broadcast as in NumPy.
template <Distributed X, Distributed Y>
constexpr auto add(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::add>{}(here, x, y);
}
/// x - y; shapes broadcast as in NumPy.
template <Distributed X, Distributed Y>
constexpr auto subtract(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::subtract>{}(here, x, y);
}

}  // namespace parallel
