// Products and quotients, element by element with broadcasting: x * y, x / y.
#pragma once
#include <parallel/operation/scale.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   y   x * y   x / y
// S   S   S       S
// S   B   S       S       y is repeated along the split dimension
// P   B   P       P       one factor may be pending, a divisor may not
// B   P   P
PARALLEL_AHEAD constexpr void multiply_gradient(Gradient& g);
PARALLEL_AHEAD constexpr void divide_gradient(Gradient& g);
PARALLEL_AHEAD constexpr Signatures quotient_table(const Arguments& a) {
  Signatures rows = split_and_whole(broadcast_indices(a));
  rows.push_back(linear_row(2, 0));
  return rows;
}
inline constexpr Operation multiply = function_of_two("multiply", product_table, multiply_gradient);
inline constexpr Operation divide = function_of_two("divide", quotient_table, divide_gradient);

PARALLEL_AHEAD constexpr void multiply_gradient(Gradient& g) {
  for (int i = 0; i < 2; ++i)
    if (g.wants(i)) give_repeated(g, i, g.emit(multiply, {g.cotangent(), g.operand(1 - i)}, {repeated_type(g, i)}));
}
PARALLEL_AHEAD constexpr void divide_gradient(Gradient& g) {
  if (g.wants(0)) give_repeated(g, 0, g.emit(divide, {g.cotangent(), g.operand(1)}, {repeated_type(g, 0)}));
  if (!g.wants(1)) return;
  const Type type = repeated_type(g, 1);  // -g * (x / y) / y
  const int product = g.emit(multiply, {g.cotangent(), g.result()}, {type});
  give_repeated(g, 1, g.emit(scale, {g.emit(divide, {product, g.operand(1)}, {type})}, {type}, {}, -1));
}
}  // namespace operation

/// x * y, element by element; shapes broadcast as in NumPy.
template <Distributed X, Distributed Y>
constexpr auto multiply(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::multiply>{}(here, x, y);
}
/// x / y, element by element; shapes broadcast as in NumPy.
template <Distributed X, Distributed Y>
constexpr auto divide(const X& x, const Y& y, Here here = {}) {
  return Apply<operation::divide>{}(here, x, y);
}

}  // namespace parallel
