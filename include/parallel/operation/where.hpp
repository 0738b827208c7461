// x where a mask is not zero, y elsewhere.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// mask   x   y   result
// S      S   S   S
// B      P   P   P        linear in x and y together
PARALLEL_AHEAD constexpr Signatures where_table(const Arguments& a) {
  Signatures rows = split_and_whole(broadcast_indices(a));
  rows.push_back({{Broadcast, Partial, Partial}, {Partial}});
  return rows;
}
/// (mask, x): x where the mask is not zero (ints[0] = 1) or is zero (0), else 0
inline constexpr Operation masked{.name = "masked"};
PARALLEL_AHEAD constexpr void where_gradient(Gradient& g) {
  for (int i = 1; i <= 2; ++i)
    if (g.wants(i))
      give_repeated(g, i, g.emit(masked, {g.operand(0), g.cotangent()}, {repeated_type(g, i)}, {i == 1 ? 1 : 0}));
}
PARALLEL_AHEAD constexpr Shaped where_shape(const Arguments& a) {
  const Shaped shaped = broadcast_shape(a, 1);
  const Refusal mask = whole_numbers(a, 0);  // x and y in its place are more likely than of two types
  return {shaped.results, mask ? mask : shaped.refusal};
}
inline constexpr Operation where{.name = "where",
                                 .shape = where_shape,
                                 .signatures = where_table,
                                 .element_by_element = 7,
                                 .gradient = where_gradient};
}  // namespace operation

/// x where mask is not zero, y elsewhere; shapes broadcast as in NumPy. The mask (whole numbers) has no gradient.
template <Distributed M, Distributed X, Distributed Y>
constexpr auto where(const M& mask, const X& x, const Y& y, Here here = {}) {
  return Apply<operation::where>{}(here, mask, x, y);
}

}  // namespace parallel
