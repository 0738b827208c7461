// Powers, element by element with broadcasting: pow(x, 3), pow(x, y), pow(2, y).
#pragma once
#include <parallel/operation/compare.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   y   result
// S   S   S
// S   B   S       y is repeated along the split dimension
/// (x, y, g): g y x^(y - 1), and 0 where y is 0
inline constexpr Operation pow_derivative{.name = "pow_gradient", .element_by_element = 7, .rate = Rate::functions};
/// (x, y, g): g x^y log x, and 0 where x is 0 and y not below
inline constexpr Operation pow_exponent_derivative{
    .name = "pow_exponent_gradient", .element_by_element = 7, .rate = Rate::functions};
PARALLEL_AHEAD constexpr void pow_gradient(Gradient& g) {
  for (int i = 0; i < 2; ++i)
    if (g.wants(i))
      give_repeated(g, i,
                    g.emit(i == 0 ? pow_derivative : pow_exponent_derivative,
                           {g.operand(0), g.operand(1), g.cotangent()}, {repeated_type(g, i)}));
}
inline constexpr Operation pow{.name = "pow",
                               .shape = all_broadcast,
                               .signatures = nonlinear_table,
                               .element_by_element = 3,
                               .gradient = pow_gradient,
                               .rate = Rate::functions};
}  // namespace operation

/// x to the power of y, of which one may be a number; shapes broadcast as in NumPy. Of a negative x it is no number
/// unless y is whole. The gradients are PyTorch's: that of x is 0 where y is 0, that of y where x is 0 and y not below.
template <internals::Beside X, internals::Beside Y>
requires(Distributed<X> || Distributed<Y>) constexpr auto pow(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::pow>(here, x, y);
}

}  // namespace parallel
