// The larger and the smaller of two, element by element with broadcasting.
#pragma once
#include <parallel/operation/compare.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   y   result
// S   S   S
// S   B   S       y is repeated along the split dimension
/// (x, y, g): what of g goes to x: all where it is chosen, half where both are equal
inline constexpr Operation larger_derivative{.name = "maximum_gradient", .element_by_element = 7};
inline constexpr Operation smaller_derivative{.name = "minimum_gradient", .element_by_element = 7};
template <const Operation& derivative>
PARALLEL_AHEAD constexpr void chosen_gradient(Gradient& g) {
  for (int i = 0; i < 2; ++i)
    if (g.wants(i))
      give_repeated(g, i, g.emit(derivative, {g.operand(i), g.operand(1 - i), g.cotangent()}, {repeated_type(g, i)}));
}
inline constexpr Operation larger = function_of_two("maximum", nonlinear_table, chosen_gradient<larger_derivative>);
inline constexpr Operation smaller = function_of_two("minimum", nonlinear_table, chosen_gradient<smaller_derivative>);
}  // namespace operation

/// The larger of x and y; shapes broadcast as in NumPy, and y may be a number. What is no number is the larger. Where
/// both are equal, each has half of the gradient, as in PyTorch. The largest along a dimension is `max`.
template <Distributed X, internals::Beside Y>
constexpr auto maximum(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::larger>(here, x, y);
}
/// The smaller of x and y; what is no number is the smaller, too. The smallest along a dimension is `min`.
template <Distributed X, internals::Beside Y>
constexpr auto minimum(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::smaller>(here, x, y);
}

}  // namespace parallel
