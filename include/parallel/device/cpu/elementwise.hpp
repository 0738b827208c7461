// Functions of one number, and their gradients.
#pragma once
#include <parallel/device/cpu/array.hpp>
#include <type_traits>

namespace parallel::cpu {

template <class T, class Function>
void each_element(const Call& call, Function function) {
  const Index n = call.results[0].elements();
  array(call.results[0].as<T>(), n) = function(array(call.operands[0].as<const T>(), n));
}
/// A piece at a time, where the function needs intermediates.
template <class T, class Function>
void each_chunk(const Call& call, Function function) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands.size() > 1 ? call.operands[1].as<const T>() : x;
  T* out = call.results[0].as<T>();
  in_chunks(call.results[0].elements(), [&](Index i, Index n) { function(array(x + i, n), array(g + i, n), array(out + i, n)); });
}

/// x times the first number.
template <class T>
void scale(const Call& call) {
  each_element<T>(call, [factor = static_cast<T>(call.reals[0])](const auto& x) { return x * factor; });
}
template <class T>
void square(const Call& call) {
  each_element<T>(call, [](const auto& x) { return x.square(); });
}
template <class T>
void sqrt(const Call& call) {
  each_element<T>(call, [](const auto& x) { return x.sqrt(); });
}
template <class T>
void exp(const Call& call) {
  exponentials(call.operands[0].as<const T>(), T{0}, call.results[0].as<T>(), call.results[0].elements());
}
template <class T>
void relu(const Call& call) {
  const T* x = call.operands[0].as<const T>();
  fill(call.results[0].as<T>(), call.results[0].elements(), [=](Index i) { return x[i] < 0 ? T{0} : x[i]; });
}
/// (x, g)
template <class T>
void relu_gradient(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  fill(call.results[0].as<T>(), call.results[0].elements(), [=](Index i) {
    const T value = g[i];
    return x[i] > 0 ? value : T{0};
  });
}

// gelu(x) = x (1 + tanh u) / 2 = x s, with u = sqrt(2 / pi) (x + 0.044715 x^3) and s = 1 / (1 + exp(-2 u)).
inline constexpr double gelu_first = 1.5957691216057308, gelu_third = gelu_first * 0.044715;  // of 2 u

template <class T>
void gelu(const Call& call) {
  constexpr T first = static_cast<T>(-gelu_first), third = static_cast<T>(-gelu_third);
  each_chunk<T>(call, [=](const auto& x, const auto&, auto out) {
    out = x * (first + third * x.square());
    exponentials(out.data(), T{0}, out.data(), out.size());
    out = x / (T{1} + out);
  });
}
/// (x, g): g (s + x s (1 - s) 2 u')
template <class T>
void gelu_gradient(const Call& call) {
  constexpr T first = static_cast<T>(gelu_first), third = static_cast<T>(gelu_third);
  each_chunk<T>(call, [=](const auto& x, const auto& g, auto out) {
    Chunk<T> s = -x * (first + third * x.square());
    exponentials(s.data(), T{0}, s.data(), s.size());
    s = (T{1} + s).inverse();
    out = g * (s + x * s * (T{1} - s) * (first + T{3} * third * x.square()));
  });
}

/// z = erfc(|x| / sqrt 2): twice the normal distribution's tail. For float a fit with a relative error of 1.2e-7 everywhere
/// (Press et al., Numerical Recipes, 1992, erfcc), which is vectorised.
template <class T, class X>
void two_tails(const X& x, Chunk<T>& z) {
  z = x.abs() * static_cast<T>(0.70710678118654752);
  if constexpr (std::is_same_v<T, float>) {
    constexpr float terms[] = {0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f, 0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f};
    const Chunk<T> t = (1 + 0.5f * z).inverse();
    Chunk<T> power = terms[0] * t + terms[1];
    for (int i = 2; i < 10; ++i) power = power * t + terms[i];
    z = power - z.square();
    exponentials(z.data(), T{0}, z.data(), z.size());
    z *= t;
  } else {
    for (Index i = 0; i < z.size(); ++i) z[i] = std::erfc(z[i]);
  }
}
/// x times the normal distribution function.
template <class T>
void gelu_erf(const Call& call) {
  each_chunk<T>(call, [](const auto& x, const auto&, auto out) {
    Chunk<T> tails;
    two_tails(x, tails);
    out = T{0.5} * (x + x.abs() * (T{1} - tails));
  });
}
/// (x, g): g times distribution function plus x times density
template <class T>
void gelu_erf_gradient(const Call& call) {
  constexpr T density = static_cast<T>(0.39894228040143268);
  each_chunk<T>(call, [=](const auto& x, const auto& g, auto out) {
    Chunk<T> tails, bell = T{-0.5} * x.square();
    two_tails(x, tails);
    exponentials(bell.data(), T{0}, bell.data(), bell.size());
    bell *= x * density;
    fill(out.data(), out.size(), [&](Index i) {
      const T tail = T{0.5} * tails[i];
      return g[i] * ((x[i] < 0 ? tail : T{1} - tail) + bell[i]);
    });
  });
}

}  // namespace parallel::cpu
