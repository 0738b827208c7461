// Functions of one to three numbers, and their gradients, for whole tensors.
//
// Each reads every element of every operand once and writes every element of the result once: of 4 bytes a function of
// one tensor moves 8 bytes an element, of two 12; what repeats comes from the caches.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// exp(x), for a result that is rounded to T: of bf16 and f16 the hardware's, whose error of about 2^-20 is far
/// below that rounding's.
template <class T>
PARALLEL_DEVICE Wide<T> exponential(Wide<T> x) {
#if defined(__CUDA_ARCH__)
  if constexpr (Half<T>) return __expf(x);
#endif
  return std::exp(x);
}
/// x / y, likewise.
template <class T>
PARALLEL_DEVICE Wide<T> quotient(Wide<T> x, Wide<T> y) {
#if defined(__CUDA_ARCH__)
  if constexpr (Half<T>) return __fdividef(x, y);
#endif
  return x / y;
}
/// 1 / (1 + exp(-x)).
template <class T>
PARALLEL_DEVICE Wide<T> logistic(Wide<T> x) {
  return quotient<T>(1, 1 + exponential<T>(-x));
}

// clang-format off
struct Add      { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x + y; } };
struct Subtract { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x - y; } };
struct Multiply { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x * y; } };
struct Divide   { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return x / y; } };
struct Same     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return x; } };
struct Square   { template <class T> PARALLEL_DEVICE T operator()(T x) const { return x * x; } };
struct Sqrt     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::sqrt(x); } };
struct Log      { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::log(x); } };
struct Tanh     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::tanh(x); } };
struct Sin      { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::sin(x); } };
struct Cos      { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::cos(x); } };
struct Abs      { template <class T> PARALLEL_DEVICE T operator()(T x) const { return std::abs(x); } };
struct Sign     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return x > 0 ? T{1} : x < 0 ? T{-1} : T{0}; } };
struct SinDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T g) const { return g * std::cos(x); } };
struct CosDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T g) const { return g * -std::sin(x); } };
struct AbsDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T g) const { return g * Sign{}(x); } };
struct Relu     { template <class T> PARALLEL_DEVICE T operator()(T x) const { return x < 0 ? T{0} : x; } };
struct ReluDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T g) const { return x > 0 ? g : T{0}; } };
struct LargerDerivative  { template <class T> PARALLEL_DEVICE T operator()(T x, T y, T g) const { return x == y ? g / 2 : x < y ? T{0} : g; } };
struct SmallerDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T y, T g) const { return x == y ? g / 2 : x > y ? T{0} : g; } };
struct Pow           { template <class T> PARALLEL_DEVICE T operator()(T x, T y) const { return std::pow(x, y); } };
struct PowDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T y, T g) const { return y == 0 ? T{0} : g * (y * std::pow(x, y - 1)); } };
struct PowExponentDerivative { template <class T> PARALLEL_DEVICE T operator()(T x, T y, T g) const { return x == 0 && y >= 0 ? T{0} : g * (std::pow(x, y) * std::log(x)); } };
struct BinaryCrossEntropy {
  template <class T>
  PARALLEL_DEVICE T operator()(T z, T t) const {
    const T share = z > 0 ? T{1} - t : -t;
    return (share == 0 ? T{0} : z * share) + std::log1p(std::exp(-std::abs(z)));
  }
};
struct Equal        { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x == y; } };
struct NotEqual     { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x != y; } };
struct Less         { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x < y; } };
struct LessEqual    { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x <= y; } };
struct Greater      { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x > y; } };
struct GreaterEqual { template <class T> PARALLEL_DEVICE int operator()(T x, T y) const { return x >= y; } };
struct Where    { template <class T> PARALLEL_DEVICE T operator()(int mask, T x, T y) const { return mask != 0 ? x : y; } };

template <class T> struct Exp     { PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const { return exponential<T>(x); } };
template <class T> struct Sigmoid { PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const { return logistic<T>(x); } };
template <class T> struct Silu    { PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const { return quotient<T>(x, 1 + exponential<T>(-x)); } };
// clang-format on

/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)).
struct Softplus {
  template <class T>
  PARALLEL_DEVICE T operator()(T x) const {
    return (x < 0 ? T{0} : x) + std::log1p(std::exp(-std::abs(x)));
  }
};
template <class T>
struct SoftplusDerivative {
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const { return g * logistic<T>(x); }
};
/// (logits, targets, g)
template <class T>
struct BinaryCrossEntropyDerivative {
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> z, Wide<T> t, Wide<T> g) const { return g * (logistic<T>(z) - t); }
};
/// x, not below one number nor above another; what is no number stays so.
template <class T>
struct Clamp {
  Wide<T> low, high;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const {
    const Wide<T> raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};
template <class T>
struct ClampDerivative {
  Wide<T> low, high;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const { return x > low && x < high ? g : Wide<T>{0}; }
};
/// With c, x clamped to a number: c (x - c / 2), which is x^2 / 2 within and a line beyond.
template <class T>
struct Huber {
  Wide<T> delta;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const {
    const Wide<T> c = Clamp<T>{-delta, delta}(x);
    return c * (x - c / 2);
  }
};
template <class T>
struct HuberDerivative {
  Wide<T> delta;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const { return g * Clamp<T>{-delta, delta}(x); }
};

/// The derivative is s + x s (1 - s), where s is the logistic function.
template <class T>
struct SiluDerivative {
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const {
    const Wide<T> s = logistic<T>(x);
    return g * (s + x * s * (1 - s));
  }
};

// gelu(x) = x (1 + tanh u) / 2 = x / (1 + exp(-2 u)), with u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
struct Gelu {
  // of 2 u
  static constexpr Wide<T> first = static_cast<Wide<T>>(1.5957691216057308),
                           third = static_cast<Wide<T>>(1.5957691216057308 * 0.044715);
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const {
    return quotient<T>(x, 1 + exponential<T>(-x * (first + third * (x * x))));
  }
};
/// The derivative is s + x s (1 - s) 2 u', where s = 1 / (1 + exp(-2 u)).
template <class T>
struct GeluDerivative : Gelu<T> {
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const {
    const Wide<T> square = x * x, s = logistic<T>(x * (this->first + this->third * square));
    return g * (s + x * s * (1 - s) * (this->first + 3 * this->third * square));
  }
};
/// x times the normal distribution function.
template <class T>
struct GeluErf {
  PARALLEL_DEVICE static Wide<T> distribution(Wide<T> x) {
    return static_cast<Wide<T>>(0.5) * (1 + std::erf(x * static_cast<Wide<T>>(0.70710678118654752)));
  }
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const { return x * distribution(x); }
};
/// The derivative is the distribution function plus x times the density.
template <class T>
struct GeluErfDerivative : GeluErf<T> {
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x, Wide<T> g) const {
    const Wide<T> density =
        static_cast<Wide<T>>(0.39894228040143268) * exponential<T>(static_cast<Wide<T>>(-0.5) * x * x);
    return g * (this->distribution(x) + x * density);
  }
};
template <class T>
struct Scale {
  Wide<T> factor;
  PARALLEL_DEVICE Wide<T> operator()(Wide<T> x) const { return factor * x; }
};
template <class T>
struct Masked {
  bool kept;
  PARALLEL_DEVICE Wide<T> operator()(int mask, Wide<T> x) const { return (mask != 0) == kept ? x : Wide<T>{0}; }
};

/// The kernel of a function of one operand, of two, whose element type is the result's; of a derivative: (x, g).
template <class T, class Function>
void unary(const Call& call) {
  map<Function, T, T>(call, Function{});
}
template <class T, class Function>
void binary(const Call& call) {
  map<Function, T, T, T>(call, Function{});
}

template <class T, class Derivative>
void gradient(const Call& call) {
  binary<T, Derivative>(call);
}
template <class T>
void relu(const Call& call) {
  unary<T, Relu>(call);
}
template <class T>
void relu_gradient(const Call& call) {
  binary<T, ReluDerivative>(call);
}

template <class T>
void softplus(const Call& call) {
  unary<T, Softplus>(call);
}
template <class T>
void sign(const Call& call) {
  unary<T, Sign>(call);
}
template <class T>
void abs_gradient(const Call& call) {
  binary<T, AbsDerivative>(call);
}
/// The first number, and the second, as bounds.
template <class T>
void clamp(const Call& call) {
  map<Clamp<T>, T, T>(call, {static_cast<Wide<T>>(call.reals[0]), static_cast<Wide<T>>(call.reals[1])});
}
template <class T>
void clamp_gradient(const Call& call) {
  map<ClampDerivative<T>, T, T, T>(call, {static_cast<Wide<T>>(call.reals[0]), static_cast<Wide<T>>(call.reals[1])});
}
template <class T>
void huber(const Call& call) {
  map<Huber<T>, T, T>(call, {static_cast<Wide<T>>(call.reals[0])});
}
template <class T>
void huber_gradient(const Call& call) {
  map<HuberDerivative<T>, T, T, T>(call, {static_cast<Wide<T>>(call.reals[0])});
}
template <class T>
void larger(const Call& call) {
  binary<T, Larger>(call);
}
template <class T>
void smaller(const Call& call) {
  binary<T, Smaller>(call);
}
template <class T>
void larger_gradient(const Call& call) {
  map<LargerDerivative, T, T, T, T>(call, {});
}
template <class T>
void smaller_gradient(const Call& call) {
  map<SmallerDerivative, T, T, T, T>(call, {});
}
template <class T>
void pow(const Call& call) {
  binary<T, Pow>(call);
}
template <class T>
void pow_gradient(const Call& call) {
  map<PowDerivative, T, T, T, T>(call, {});
}
template <class T>
void pow_exponent_gradient(const Call& call) {
  map<PowExponentDerivative, T, T, T, T>(call, {});
}
template <class T>
void binary_cross_entropy(const Call& call) {
  binary<T, BinaryCrossEntropy>(call);
}
template <class T>
void binary_cross_entropy_gradient(const Call& call) {
  map<BinaryCrossEntropyDerivative<T>, T, T, T, T>(call, {});
}

/// x times the first number.
template <class T>
void scale(const Call& call) {
  map<Scale<T>, T, T>(call, {static_cast<Wide<T>>(call.reals[0])});
}
/// (mask, x, y): x where the mask is not zero, y elsewhere.
template <class T>
void where(const Call& call) {
  map<Where, T, int, T, T>(call, {});
}
/// (mask, x): x where the mask is not zero (ints[0] = 1) or is zero (0), else 0.
template <class T>
void masked(const Call& call) {
  map<Masked<T>, T, int, T>(call, {call.ints[0] != 0});
}

/// Calls f(T{}) for the C++ type T of an element type.
template <class F>
void with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::bf16: return f(bfloat16{});
    case DType::f16: return f(float16{});
    default: return f(int{});
  }
}
/// (x, y): 1 where a comparison holds, else 0.
template <class Comparison>
void compare(const Call& call) {
  with_type(call.operands[0].dtype, [&]<class T>(T) { map<Comparison, int, T, T>(call, {}); });
}
/// x in another element type.
template <class T>
void cast(const Call& call) {
  with_type(call.operands[0].dtype, [&]<class From>(From) { map<Same, T, From>(call, {}); });
}
/// (term, sum): the sum in the element type of its terms.
template <class T>
void rounded(const Call& call) {
  Call sum = call;
  sum.operands = {call.operands[1]};
  cast<T>(sum);
}
/// (sum, x): sum + x in the storage of sum.
template <class T>
void accumulate(const Call& call) {
  with_element<Wide<T>>(call.operands[1].dtype, [&]<class From>(From) { map<Add, T, T, From>(call, {}); });
}

}  // namespace parallel::internals::cuda
