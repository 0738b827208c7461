// Contiguous numbers as Eigen arrays, whose expressions are vectorised at every level of optimisation, and the few
// loops that many kernels share.
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__NVCC__)  // warns of Eigen's own annotations
#pragma nv_diagnostic push
#pragma nv_diag_suppress 20012
#endif
#include <Eigen/Core>
#if defined(__NVCC__)
#pragma nv_diagnostic pop
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <parallel/device/cpu/walk.hpp>

namespace parallel::internals::cpu {

template <class T>
Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> array(T* data, Index n) {
  return {data, n};
}
template <class T>
Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> array(const T* data, Index n) {
  return {data, n};
}

/// Calls body(begin, count) for consecutive pieces of [0, n).
template <class Body>
void in_chunks(Index n, Body body, Index most = 512) {
  for (Index i = 0; i < n; i += most) body(i, std::min(most, n - i));
}

/// Sixteen numbers, which expressions keep in registers.
template <class T>
using Lanes = Eigen::Array<T, 16, 1>;
template <class T>
Eigen::Map<Lanes<T>> lanes(T* data) {
  return Eigen::Map<Lanes<T>>(data);
}
template <class T>
Eigen::Map<const Lanes<T>> lanes(const T* data) {
  return Eigen::Map<const Lanes<T>>(data);
}

/// The last, fewer than sixteen numbers of an array, with zeros behind them.
template <class T>
struct Rest {
  alignas(64) std::remove_const_t<T> values[16];
  Rest() {}  // a row that has no rest does not wait for zeros
  void take(T* from, Index n) {
    std::fill_n(values, 16, std::remove_const_t<T>{0});
    std::copy_n(from, n, values);
  }
  void give([[maybe_unused]] T* to, [[maybe_unused]] Index n) {
    if constexpr (!std::is_const_v<T>) std::copy_n(values, n, to);
  }
};

/// Calls body for sixteen consecutive elements of every array at a time. It is called for the rest, too, with copies:
/// an element's bits depend neither on where it stands nor on how many there are. A function that calls this says
/// [[gnu::flatten]], because g++ leaves parts of large expressions outside, and then loads every pointer anew for every
/// element.
template <class Body, class... T>
[[gnu::always_inline]] inline void by_lanes(Index n, Body body, T*... data) {
  [&](Rest<T> && ... rest) __attribute__((always_inline)) {
    for (Index i = 0; i < n; i += 16) {
      const bool whole = i + 16 <= n;
      if (!whole) (rest.take(data + i, n - i), ...);
      body((whole ? data + i : rest.values)...);
      if (!whole) (rest.give(data + i, n - i), ...);
    }
  }
  (Rest<T>()...);
}

/// The sum of value(...), an expression of sixteen elements of every array, over all elements; in several sums that do
/// not wait for each other.
template <class T, int sums = 4, class Value, class... From>
[[gnu::always_inline]] inline T sum_by_lanes(Index n, Value value, const From*... data) {
  Lanes<T> sum = Lanes<T>::Zero();
  Index i = 0;
  if constexpr (sums == 4) {
    Lanes<T> second = sum, third = sum, fourth = sum;
    for (; i + 64 <= n; i += 64) {
      sum += value((data + i)...);
      second += value((data + i + 16)...);
      third += value((data + i + 32)...);
      fourth += value((data + i + 48)...);
    }
    sum = (sum + second) + (third + fourth);
  }
  for (; i + 16 <= n; i += 16) sum += value((data + i)...);
  by_lanes(
      n - i,
      [&](const From*... some) {
        Lanes<T> terms = value(some...);
        for (Index j = n - i; j < 16; ++j) terms[j] = 0;  // what stands behind the rest is no term
        sum += terms;
      },
      (data + i)...);
  return sum.sum();
}

/// out[i] = value(i) for what has no array expression: choices and conversions.
template <class T, class Value>
void fill(T* out, Index n, Value value) {
  Index i = 0;
#if !defined(__clang__)  // at -O2 g++ 12 vectorises only loops of constant length, clang 14 only others
  for (; i + 16 <= n; i += 16) {
    T values[16];
    for (int j = 0; j < 16; ++j) values[j] = value(i + j);
    for (int j = 0; j < 16; ++j) out[i + j] = values[j];
  }
#endif
  for (; i < n; ++i) out[i] = value(i);
}

/// What Eigen's vectorised exp gives for -infinity: on some machines a number near the smallest, not the 0 that
/// something masked must have.
template <class T>
inline const T least_exponential = [] {
  const Lanes<T> y = Lanes<T>::Constant(-std::numeric_limits<T>::infinity()).exp();
  return y[0];
}();
/// exp(x), and 0 for -infinity.
template <class X>
auto exponential(const X& x) {
  return x.exp() - least_exponential<typename X::Scalar>;
}

// Functions of their own, so that what calls them compiles quickly.

template <class T>
[[gnu::noinline]] void set(T* data, Index n, T value) {
  array(data, n).setConstant(value);
}
/// out = exp(x - subtracted); out may be x.
template <class T>
[[gnu::noinline, gnu::flatten]] void exponentials(const T* x, T subtracted, T* out, Index n) {
  by_lanes(
      n, [=](T* y, const T* from) { lanes(y) = exponential(lanes(from) - subtracted); }, out, x);
}
template <class T>
[[gnu::noinline, gnu::flatten]] void add_to(T* sum, const T* x, Index n) {
  by_lanes(
      n, [](T* s, const T* from) { lanes(s) += lanes(from); }, sum, x);
}
template <class T>
[[gnu::noinline, gnu::flatten]] void multiply_by(T* x, T factor, Index n) {
  by_lanes(
      n, [=](T* y) { lanes(y) *= factor; }, x);
}
template <class T>
[[gnu::noinline, gnu::flatten]] T sum_of(const T* x, Index n) {
  return sum_by_lanes<T>(
      n, [](const T* from) { return lanes(from); }, x);
}
template <class T>
[[gnu::noinline, gnu::flatten]] T inner_product(const T* x, const T* y, Index n) {
  return sum_by_lanes<T>(
      n, [](const T* a, const T* b) { return lanes(a) * lanes(b); }, x, y);
}
/// out = p (g - inner): back through a softmax that gave p; out may be g.
template <class T>
[[gnu::noinline, gnu::flatten]] void probability_gradient(T* out, const T* p, const T* g, T inner, Index n) {
  by_lanes(
      n, [=](T* to, const T* a, const T* b) { lanes(to) = lanes(a) * (lanes(b) - inner); }, out, p, g);
}
/// The largest or smallest of n numbers, by an operation of Eigen's that takes what is no number; `none` of none.
template <class T, class Extreme>
[[gnu::noinline, gnu::flatten]] T extreme_of(const T* x, Index n, T none, const Extreme& extreme) {
  Lanes<T> first = Lanes<T>::Constant(none), second = first, third = first, fourth = first;
  Index i = 0;
  for (; i + 64 <= n; i += 64) {
    first = first.binaryExpr(lanes(x + i), extreme);
    second = second.binaryExpr(lanes(x + i + 16), extreme);
    third = third.binaryExpr(lanes(x + i + 32), extreme);
    fourth = fourth.binaryExpr(lanes(x + i + 48), extreme);
  }
  for (; i + 16 <= n; i += 16) first = first.binaryExpr(lanes(x + i), extreme);
  first = first.binaryExpr(second, extreme).binaryExpr(third.binaryExpr(fourth, extreme), extreme);
  T found = first.redux(extreme);
  for (; i < n; ++i) found = extreme(found, x[i]);
  return found;
}
/// The largest of n numbers, -infinity of none; what is no number is the largest.
template <class T>
T largest_of(const T* x, Index n) {
  return extreme_of(x, n, -std::numeric_limits<T>::infinity(),
                    Eigen::internal::scalar_max_op<T, T, Eigen::PropagateNaN>());
}
/// The smallest likewise.
template <class T>
T smallest_of(const T* x, Index n) {
  return extreme_of(x, n, std::numeric_limits<T>::infinity(),
                    Eigen::internal::scalar_min_op<T, T, Eigen::PropagateNaN>());
}
/// The sum of n numbers: exact to a few roundings however many there are, and the same for the same numbers.
template <class T>
double total(const T* x, Index n) {
  double sum = 0;
  in_chunks(n, [&](Index i, Index count) { sum += static_cast<double>(sum_of(x + i, count)); });
  return sum;
}

}  // namespace parallel::internals::cpu
