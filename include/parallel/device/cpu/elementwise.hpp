// Functions of one number, and their gradients.
#pragma once
#include <numbers>

#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

/// result = function(x)
template <class T, class Function>
[[gnu::flatten]] void each_element(const Call& call, Function function) {
  by_lanes(
      call.results[0].elements(),
      [=](T* out, const T* from) {
        const Lanes<T> x = lanes(from);
        lanes(out) = function(x);
      },
      call.results[0].as<T>(), call.operands[0].as<const T>());
}
template <class T, class Function>
void unary(const Call& call) {
  each_element<T>(call, Function{});
}
/// (x, g): result = g times Derivative{}(x)
template <class T, class Derivative>
[[gnu::flatten]] void gradient(const Call& call) {
  by_lanes(
      call.results[0].elements(),
      [](T* out, const T* from, const T* g) {
        const Lanes<T> x = lanes(from);
        lanes(out) = lanes(g) * Derivative{}(x);
      },
      call.results[0].as<T>(), call.operands[0].as<const T>(), call.operands[1].as<const T>());
}

/// x times the first number.
template <class T>
void scale(const Call& call) {
  each_element<T>(call, [factor = static_cast<T>(call.reals[0])](const auto& x) { return x * factor; });
}
struct Square {
  auto operator()(const auto& x) const { return x.square(); }
};
/// Eigen's root and logarithm take a subnormal number for zero, and its root has none of infinity: numbers below the
/// least normal one are raised, and what is made of them is lowered again.
template <class T>
struct Raised {
  static constexpr T by = static_cast<T>(0x1p64), root = static_cast<T>(0x1p-32);
  static constexpr T logarithm = static_cast<T>(64 * std::numbers::ln2);
  static auto small(const Lanes<T>& x) { return x < std::numeric_limits<T>::min(); }
  static Lanes<T> of(const Lanes<T>& x) { return small(x).select(x * by, x); }
};
struct Sqrt {
  template <class T>
  Lanes<T> operator()(const Lanes<T>& x) const {
    const Lanes<T> y = Raised<T>::of(x).sqrt();
    return (x == std::numeric_limits<T>::infinity()).select(x, Raised<T>::small(x).select(y * Raised<T>::root, y));
  }
};
struct Log {
  template <class T>
  Lanes<T> operator()(const Lanes<T>& x) const {
    const Lanes<T> y = Raised<T>::of(x).log();
    return Raised<T>::small(x).select(y - Raised<T>::logarithm, y);
  }
};
struct Tanh {
  auto operator()(const auto& x) const { return x.tanh(); }
};
template <class T>
struct Exp {
  auto operator()(const Lanes<T>& x) const { return exponential(x); }
};
template <class T>
struct Sigmoid {
  auto operator()(const Lanes<T>& x) const { return (T{1} + (-x).exp()).inverse(); }
};
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
struct Gelu {
  static constexpr T first = static_cast<T>(-gelu_first), third = static_cast<T>(-gelu_third);
  auto operator()(const Lanes<T>& x) const { return x / (T{1} + (x * (first + third * x.square())).exp()); }
};
/// The derivative is s + x s (1 - s) 2 u'.
template <class T>
struct GeluDerivative {
  static constexpr T first = static_cast<T>(gelu_first), third = static_cast<T>(gelu_third);
  Lanes<T> operator()(const Lanes<T>& x) const {
    const Lanes<T> s = (T{1} + (-x * (first + third * x.square())).exp()).inverse();
    return s + x * s * (T{1} - s) * (first + T{3} * third * x.square());
  }
};

/// erfc(|x| / sqrt 2): twice the normal distribution's tail. For float a fit with a relative error of 1.2e-7 everywhere
/// (Press et al., Numerical Recipes, 1992, erfcc), which is vectorised.
template <class T>
Lanes<T> two_tails(const Lanes<T>& x) {
  const Lanes<T> z = x.abs() * static_cast<T>(0.70710678118654752);
  if constexpr (std::is_same_v<T, float>) {
    constexpr float terms[] = {0.17087277f,  -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                               -0.18628806f, 0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
    const Lanes<T> t = (1 + 0.5f * z).inverse();
    Lanes<T> power = Lanes<T>::Constant(terms[0]);
    for (int i = 1; i < 10; ++i) power = power * t + terms[i];
    return t * (power - z.square()).exp();
  } else {
    return z.unaryExpr([](T value) { return std::erfc(value); });
  }
}
/// x times the normal distribution function.
template <class T>
struct GeluErf {
  Lanes<T> operator()(const Lanes<T>& x) const { return T{0.5} * (x + x.abs() * (T{1} - two_tails(x))); }
};
/// The derivative is the distribution function plus x times the density.
template <class T>
struct GeluErfDerivative {
  static constexpr T density = static_cast<T>(0.39894228040143268), least = std::numeric_limits<T>::min();
  Lanes<T> operator()(const Lanes<T>& x) const {
    const auto sign = x / x.abs().max(least);
    return T{0.5} + T{0.5} * sign * (T{1} - two_tails(x)) + x * density * (T{-0.5} * x.square()).exp();
  }
};

template <class T>
struct Silu {
  auto operator()(const Lanes<T>& x) const { return x / (T{1} + (-x).exp()); }
};
/// The derivative is s + x s (1 - s), where s = 1 / (1 + exp(-x)).
template <class T>
struct SiluDerivative {
  Lanes<T> operator()(const Lanes<T>& x) const {
    const Lanes<T> s = (T{1} + (-x).exp()).inverse();
    return s + x * s * (T{1} - s);
  }
};

/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)).
template <class T>
struct Softplus {
  Lanes<T> operator()(const Lanes<T>& x) const {
    const Lanes<T> rest = exponential(-x.abs());
    return x.max(T{0}) + rest.log1p();
  }
};
template <class T>
void softplus(const Call& call) {
  unary<T, Softplus<T>>(call);
}
template <class T>
using SoftplusDerivative = Sigmoid<T>;
struct Sin {
  auto operator()(const auto& x) const { return x.sin(); }
};
struct Cos {
  auto operator()(const auto& x) const { return x.cos(); }
};
using SinDerivative = Cos;
struct CosDerivative {
  auto operator()(const auto& x) const { return -x.sin(); }
};
struct Abs {
  auto operator()(const auto& x) const { return x.abs(); }
};

/// result = value(x)
template <class T, class Value>
void each_number(const Call& call, Value value) {
  const T* x = call.operands[0].as<const T>();
  fill(call.results[0].as<T>(), call.results[0].elements(), [=](Index i) { return value(x[i]); });
}
/// (x, g): result = value(x, g)
template <class T, class Value>
void each_gradient(const Call& call, Value value) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  fill(call.results[0].as<T>(), call.results[0].elements(), [=](Index i) { return value(x[i], g[i]); });
}
template <class T>
T sign_of(T x) {
  return static_cast<T>(x > 0) - static_cast<T>(x < 0);
}
template <class T>
void sign(const Call& call) {
  each_number<T>(call, [](T x) { return sign_of(x); });
}
template <class T>
void abs_gradient(const Call& call) {
  each_gradient<T>(call, [](T x, T g) { return g * sign_of(x); });
}
/// x, not below the first number nor above the second; what is no number stays so.
template <class T>
T clamped(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}
template <class T>
void clamp(const Call& call) {
  each_number<T>(call, [low = static_cast<T>(call.reals[0]), high = static_cast<T>(call.reals[1])](T x) {
    return clamped(x, low, high);
  });
}
template <class T>
void clamp_gradient(const Call& call) {
  each_gradient<T>(call, [low = static_cast<T>(call.reals[0]), high = static_cast<T>(call.reals[1])](T x, T g) {
    return x > low && x < high ? g : T{0};
  });
}
/// With c, x clamped to the first number: c (x - c / 2), which is x^2 / 2 within and a line beyond.
template <class T>
void huber(const Call& call) {
  each_number<T>(call, [delta = static_cast<T>(call.reals[0])](T x) {
    const T c = clamped(x, -delta, delta);
    return c * (x - c / 2);
  });
}
template <class T>
void huber_gradient(const Call& call) {
  each_gradient<T>(call, [delta = static_cast<T>(call.reals[0])](T x, T g) { return g * clamped(x, -delta, delta); });
}

}  // namespace parallel::internals::cpu
