// Where along a dimension the largest or smallest element stands. Over a split dimension the ranks exchange the
// extreme, and then where the first of them stands that has it.
#pragma once
#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x                 argmax, argmin
// S, over           I, by two exchanges
// S, kept           S
PARALLEL_AHEAD constexpr Shaped position_shape(const Arguments& a) {
  const Shaped shaped = reduce_shape(a, DType::i32);
  return {shaped.results, shaped.refusal ? shaped.refusal : counted(a, 0, a.ints[0])};
}
PARALLEL_AHEAD constexpr void argmax_lower(Lowering&);
PARALLEL_AHEAD constexpr void argmin_lower(Lowering&);
/// Along dimension ints[0].
inline constexpr Operation argmax{.name = "argmax",
                                  .shape = position_shape,
                                  .signatures = max_table,
                                  .lower = argmax_lower,
                                  .flops = elements_of_operand};
inline constexpr Operation argmin{.name = "argmin",
                                  .shape = position_shape,
                                  .signatures = max_table,
                                  .lower = argmin_lower,
                                  .flops = elements_of_operand};
/// (x, extreme): minus the position in the full tensor of the rank's first element that equals it, -infinity of none
inline constexpr Operation first_equal{.name = "first_equal", .flops = elements_of_operand};
inline constexpr Operation position_of{.name = "position_of"};  ///< minus that, as a whole number

constexpr void lower_position(Lowering& l, bool largest) {
  const int x = l.operands[0];
  if (l.exchanging.empty()) {
    l.result = l.emit(largest ? argmax : argmin, {x}, l.results, l.ints);
    return;
  }
  const Type extreme{l.type(0).dtype, l.results[0].layout}, place{DType::f64, l.results[0].layout};
  const int all = largest ? maximum(l, x, extreme, l.exchanging, l.ints) : minimum(l, x, extreme, l.exchanging, l.ints);
  const int own = l.emit(first_equal, {x, all}, {pending_on(place, l.exchanging)}, l.ints);
  l.result = l.emit(position_of, {l.exchange(own, l.exchanging, true)}, l.results);
}
PARALLEL_AHEAD constexpr void argmax_lower(Lowering& l) { lower_position(l, true); }
PARALLEL_AHEAD constexpr void argmin_lower(Lowering& l) { lower_position(l, false); }
}  // namespace operation

/// argmax<1>(x): at which position of dimension 1 the largest element stands, whole numbers without that dimension; of
/// equal ones the first, as in PyTorch and NumPy. What is no number is the largest.
template <int dim, Distributed X>
constexpr auto argmax(const X& x, Here here = {}) {
  return Apply<operation::argmax, dim>{}(here, x);
}
/// The same of the smallest; what is no number is the smallest, too.
template <int dim, Distributed X>
constexpr auto argmin(const X& x, Here here = {}) {
  return Apply<operation::argmin, dim>{}(here, x);
}

}  // namespace parallel
