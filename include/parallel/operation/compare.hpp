// Comparisons element by element, which give masks: whole numbers, 1 where they hold, else 0, as `where` takes. Masks
// together.
#pragma once
#include <parallel/operation/source.hpp>
#include <parallel/operation/where.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   y   mask
// S   S   S
// S   B   S       y is repeated along the split dimension
PARALLEL_AHEAD constexpr Shaped mask_shape(const Arguments& a) {
  Shaped shaped = broadcast_shape(a);
  shaped.results[0].dtype = DType::i32;
  return shaped;
}
/// A mask has no gradient, and so what is compared has none from it.
constexpr Operation comparison(std::string_view name) {
  return {.name = name, .shape = mask_shape, .signatures = nonlinear_table, .element_by_element = 3};
}
inline constexpr Operation equal = comparison("equal");
inline constexpr Operation not_equal = comparison("not_equal");
inline constexpr Operation less = comparison("less");
inline constexpr Operation less_equal = comparison("less_equal");
inline constexpr Operation greater = comparison("greater");
inline constexpr Operation greater_equal = comparison("greater_equal");
}  // namespace operation

namespace internals {
template <class Y>
concept Number = std::is_arithmetic_v<Y>;
/// What stands beside an X: a tensor, or a number of its element type. A fraction beside whole numbers stays one, and
/// is refused.
template <class X, class Y>
constexpr auto beside(const Y& y) {
  if constexpr (Number<Y>) {
    constexpr bool fraction = X::type.dtype == DType::i32 && !std::is_integral_v<Y>;
    return constant<typename ElementOf<fraction ? DType::f32 : X::type.dtype>::type>(static_cast<double>(y));
  } else {
    return y;
  }
}
/// What may stand beside a tensor.
template <class Y>
concept Beside = Number<Y> || Distributed<Y>;
/// An operation of two operands, of which one may be a number.
template <const Operation& operation, class X, class Y>
constexpr auto apply_beside(const Source& where, const X& x, const Y& y) {
  if constexpr (Number<X>)
    return Apply<operation>{}(where, beside<Y>(x), y);
  else
    return Apply<operation>{}(where, x, beside<X>(y));
}
}  // namespace internals

/// 1 where x is y, else 0; shapes broadcast as in NumPy, and y may be a number. What is no number is equal to nothing,
/// not even itself, as in PyTorch.
template <Distributed X, internals::Beside Y>
constexpr auto equal(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::equal>(here, x, y);
}
/// 1 where x is not y, else 0: what is no number differs from all.
template <Distributed X, internals::Beside Y>
constexpr auto not_equal(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::not_equal>(here, x, y);
}
/// 1 where x < y, else 0.
template <Distributed X, internals::Beside Y>
constexpr auto less(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::less>(here, x, y);
}
/// 1 where x <= y, else 0.
template <Distributed X, internals::Beside Y>
constexpr auto less_equal(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::less_equal>(here, x, y);
}
/// 1 where x > y, else 0.
template <Distributed X, internals::Beside Y>
constexpr auto greater(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::greater>(here, x, y);
}
/// 1 where x >= y, else 0.
template <Distributed X, internals::Beside Y>
constexpr auto greater_equal(const X& x, const Y& y, Here here = {}) {
  return internals::apply_beside<operation::greater_equal>(here, x, y);
}

/// 1 where a mask is zero, else 0.
template <Distributed M>
constexpr auto logical_not(const M& mask, Here here = {}) {
  return equal(mask, 0, here);
}
/// 1 where neither mask is zero, else 0.
template <Distributed M, Distributed N>
constexpr auto logical_and(const M& m, const N& n, Here here = {}) {
  return where(m, not_equal(n, 0, here), internals::beside<M>(0), here);
}
/// 1 where one of two masks is not zero, else 0.
template <Distributed M, Distributed N>
constexpr auto logical_or(const M& m, const N& n, Here here = {}) {
  return where(m, internals::beside<M>(1), not_equal(n, 0, here), here);
}

}  // namespace parallel
