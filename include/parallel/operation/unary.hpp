// Functions of one number: square, sqrt, exp, log, sin, cos, tanh, sigmoid, relu, gelu, silu, softplus, abs, sign,
// clamp. None is linear, so a pending sum is completed before them.
#pragma once
#include <parallel/operation/add.hpp>
#include <parallel/operation/multiply.hpp>
#include <parallel/operation/source.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x   result
// S   S
PARALLEL_AHEAD constexpr void square_gradient(Gradient& g) {  // 2 x g
  const Type type = conjugate(g.type(0));
  g.give(0, scale, {g.emit(multiply, {g.cotangent(), g.operand(0)}, {type})}, {}, 2);
}
PARALLEL_AHEAD constexpr void sqrt_gradient(Gradient& g) {  // g / (2 sqrt x)
  const Type type = conjugate(g.type(0));
  g.give(0, scale, {g.emit(divide, {g.cotangent(), g.result()}, {type})}, {}, 0.5);
}
PARALLEL_AHEAD constexpr void exp_gradient(Gradient& g) { g.give(0, multiply, {g.cotangent(), g.result()}); }
PARALLEL_AHEAD constexpr void log_gradient(Gradient& g) { g.give(0, divide, {g.cotangent(), g.operand(0)}); }
PARALLEL_AHEAD constexpr void tanh_gradient(Gradient& g) {  // g - g y^2
  const Type type = conjugate(g.type(0));
  g.give(
      0, subtract,
      {g.cotangent(), g.emit(multiply, {g.emit(multiply, {g.cotangent(), g.result()}, {type}), g.result()}, {type})});
}
PARALLEL_AHEAD constexpr void sigmoid_gradient(Gradient& g) {  // g y - g y^2
  const Type type = conjugate(g.type(0));
  const int product = g.emit(multiply, {g.cotangent(), g.result()}, {type});
  g.give(0, subtract, {product, g.emit(multiply, {product, g.result()}, {type})});
}

/// (x, g) -> g where x > 0
inline constexpr Operation relu_derivative{.name = "relu_gradient", .element_by_element = 3};
/// (x, g); tanh form
inline constexpr Operation gelu_derivative{.name = "gelu_gradient", .element_by_element = 3, .rate = Rate::functions};
inline constexpr Operation gelu_erf_derivative{
    .name = "gelu_erf_gradient", .element_by_element = 3, .rate = Rate::functions};
/// (x, g)
inline constexpr Operation silu_derivative{.name = "silu_gradient", .element_by_element = 3, .rate = Rate::functions};
/// (x, g)
inline constexpr Operation softplus_derivative{
    .name = "softplus_gradient", .element_by_element = 3, .rate = Rate::functions};
inline constexpr Operation sin_derivative{.name = "sin_gradient", .element_by_element = 3, .rate = Rate::functions};
inline constexpr Operation cos_derivative{.name = "cos_gradient", .element_by_element = 3, .rate = Rate::functions};
/// (x, g) -> g times the sign of x, 0 where x is 0
inline constexpr Operation abs_derivative{.name = "abs_gradient", .element_by_element = 3};
/// (x, g) -> g where x is above the first number and below the second
inline constexpr Operation clamp_derivative{.name = "clamp_gradient", .element_by_element = 3};
template <const Operation& derivative>
PARALLEL_AHEAD constexpr void unary_gradient(Gradient& g) {
  g.give(0, derivative, {g.operand(0), g.cotangent()}, {}, g.node.reals[0], g.node.reals[1]);
}

inline constexpr Operation square = function_of_one("square", square_gradient, Rate::memory);
inline constexpr Operation sqrt = function_of_one("sqrt", sqrt_gradient, Rate::memory);
inline constexpr Operation exp = function_of_one("exp", exp_gradient);
inline constexpr Operation log = function_of_one("log", log_gradient);
inline constexpr Operation tanh = function_of_one("tanh", tanh_gradient);
inline constexpr Operation sigmoid = function_of_one("sigmoid", sigmoid_gradient);
inline constexpr Operation relu = function_of_one("relu", unary_gradient<relu_derivative>, Rate::memory);
inline constexpr Operation gelu = function_of_one("gelu", unary_gradient<gelu_derivative>);
inline constexpr Operation gelu_erf = function_of_one("gelu_erf", unary_gradient<gelu_erf_derivative>);
inline constexpr Operation silu = function_of_one("silu", unary_gradient<silu_derivative>);
inline constexpr Operation softplus = function_of_one("softplus", unary_gradient<softplus_derivative>);
inline constexpr Operation sin = function_of_one("sin", unary_gradient<sin_derivative>);
inline constexpr Operation cos = function_of_one("cos", unary_gradient<cos_derivative>);
inline constexpr Operation abs = function_of_one("abs", unary_gradient<abs_derivative>, Rate::memory);
/// It is constant but where it jumps: nothing has a gradient from it.
inline constexpr Operation sign = function_of_one("sign", no_gradient, Rate::memory);
/// Not below the first number, nor above the second.
inline constexpr Operation clamp = function_of_one("clamp", unary_gradient<clamp_derivative>, Rate::memory);
}  // namespace operation

template <Distributed X>
constexpr auto square(const X& x, Here here = {}) {
  return Apply<operation::square>{}(here, x);
}
template <Distributed X>
constexpr auto sqrt(const X& x, Here here = {}) {
  return Apply<operation::sqrt>{}(here, x);
}
template <Distributed X>
constexpr auto exp(const X& x, Here here = {}) {
  return Apply<operation::exp>{}(here, x);
}
template <Distributed X>
constexpr auto log(const X& x, Here here = {}) {
  return Apply<operation::log>{}(here, x);
}
template <Distributed X>
constexpr auto tanh(const X& x, Here here = {}) {
  return Apply<operation::tanh>{}(here, x);
}
/// 1 / (1 + exp(-x)).
template <Distributed X>
constexpr auto sigmoid(const X& x, Here here = {}) {
  return Apply<operation::sigmoid>{}(here, x);
}
template <Distributed X>
constexpr auto relu(const X& x, Here here = {}) {
  return Apply<operation::relu>{}(here, x);
}
/// The tanh form (Hendrycks and Gimpel, 2016), as in GPT-2.
template <Distributed X>
constexpr auto gelu(const X& x, Here here = {}) {
  return Apply<operation::gelu>{}(here, x);
}
/// The exact form, x times the normal distribution function.
template <Distributed X>
constexpr auto gelu_erf(const X& x, Here here = {}) {
  return Apply<operation::gelu_erf>{}(here, x);
}
/// x times its logistic function, x / (1 + exp(-x)) (Hendrycks and Gimpel, 2016; "swish").
template <Distributed X>
constexpr auto silu(const X& x, Here here = {}) {
  return Apply<operation::silu>{}(here, x);
}
/// log(1 + exp(x)), without overflow; its derivative is the logistic function.
template <Distributed X>
constexpr auto softplus(const X& x, Here here = {}) {
  return Apply<operation::softplus>{}(here, x);
}
template <Distributed X>
constexpr auto sin(const X& x, Here here = {}) {
  return Apply<operation::sin>{}(here, x);
}
template <Distributed X>
constexpr auto cos(const X& x, Here here = {}) {
  return Apply<operation::cos>{}(here, x);
}
/// |x|; its gradient is 0 where x is 0, as in PyTorch.
template <Distributed X>
constexpr auto abs(const X& x, Here here = {}) {
  return Apply<operation::abs>{}(here, x);
}
/// -1, 0 or 1; 0 of what is no number, as in PyTorch. No gradient goes through it.
template <Distributed X>
constexpr auto sign(const X& x, Here here = {}) {
  return Apply<operation::sign>{}(here, x);
}
/// x, but `low` where it is below and `high` where it is above; `high` everywhere if `low` is above it. The gradient
/// goes to the elements between them, not to those at a bound, as in PyTorch.
template <Distributed X>
constexpr auto clamp(const X& x, double low, double high, Here here = {}) {
  return Apply<operation::clamp>{low, high}(here, x);
}
/// 1 / x.
template <Distributed X>
constexpr auto reciprocal(const X& x, Here here = {}) {
  return divide(constant<typename internals::ElementOf<X::type.dtype>::type>(1), x, here);
}

}  // namespace parallel
