// The same values in another element type.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {
namespace operation {
// x   result
// S   S
// P   P       by name only: a sum of rounded terms is another sum, so it is completed first
constexpr Signatures cast_table(const Arguments& a) {
  Signatures rows = nonlinear_table(a);
  Signature pending = uniform_row(1, 1, Partial);
  pending.by_name = true;
  rows.push_back(pending);
  return rows;
}
constexpr Shaped cast_shape(const Arguments& a) { return {{{static_cast<DType>(a.ints[0]), a.types[0].layout.unplaced()}}, {}}; }
constexpr void cast_gradient(Gradient& g);
/// ints: the new element type.
inline constexpr Operation cast{.name = "cast", .shape = cast_shape, .signatures = cast_table, .element_by_element = 1, .gradient = cast_gradient};
constexpr void cast_gradient(Gradient& g) { g.give(0, cast, {g.cotangent()}, {static_cast<int>(g.type(0).dtype)}); }
}  // namespace operation

/// cast<double>(x).
template <class T, Distributed X>
constexpr auto cast(const X& x, Here here = {}) {
  return Apply<operation::cast, static_cast<int>(dtype_of<T>)>{}(here, x);
}

}  // namespace parallel
