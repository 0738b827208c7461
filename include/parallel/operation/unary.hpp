// Functions of one number: square, sqrt, exp, log, tanh, sigmoid, relu, gelu, silu. None is linear, so a pending sum is
// completed before them.
#pragma once
#include <parallel/operation/add.hpp>
#include <parallel/operation/multiply.hpp>

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
template <const Operation& derivative>
PARALLEL_AHEAD constexpr void unary_gradient(Gradient& g) {
  g.give(0, derivative, {g.operand(0), g.cotangent()});
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

}  // namespace parallel
