// A number times a tensor: linear, so every placement passes.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   result
// S   S
// P   P
PARALLEL_AHEAD constexpr void scale_gradient(Gradient& g);
inline constexpr Operation scale{.name = "scale",
                                 .shape = same_shape,
                                 .signatures = linear_table,
                                 .element_by_element = 1,
                                 .gradient = scale_gradient};
PARALLEL_AHEAD constexpr void scale_gradient(Gradient& g) { g.give(0, scale, {g.cotangent()}, {}, g.node.reals[0]); }
}  // namespace operation

/// factor * x.
template <Distributed X>
constexpr auto scale(const X& x, double factor, Here here = {}) {
  return Apply<operation::scale>{factor}(here, x);
}

}  // namespace parallel
