// Contiguous numbers as Eigen arrays, whose expressions are vectorised at every level of optimisation, and the few loops that many kernels share.
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <algorithm>
#include <cmath>
#include <limits>
#include <parallel/device/cpu/walk.hpp>
#include <type_traits>

namespace parallel::cpu {

template <class T>
Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>> array(T* data, Index n) {
  return {data, n};
}
template <class T>
Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> array(const T* data, Index n) {
  return {data, n};
}

inline constexpr Index chunk = 512;  ///< elements that are worked on at once where an intermediate is kept: it stays in the first cache

/// Calls body(begin, count) for consecutive pieces of [0, n).
template <class Body>
void in_chunks(Index n, Body body, Index most = chunk) {
  for (Index i = 0; i < n; i += most) body(i, std::min(most, n - i));
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

/// Calls body(i, n) for n = 16 consecutive elements at a time and then for n = 1, where n is a constant: what body loads and computes stays in
/// registers. A function that calls this says [[gnu::flatten]]: where a compiler leaves parts of Eigen outside, every pointer is loaded anew for
/// every element.
template <class Body>
[[gnu::always_inline]] inline void in_registers(Index count, Body body) {
  Index i = 0;
  for (; i + 16 <= count; i += 16) body(i, std::integral_constant<int, 16>{});
  for (; i < count; ++i) body(i, std::integral_constant<int, 1>{});
}
template <class T, int n>
using Lanes = Eigen::Array<T, n, 1>;
template <class T, int n>
Eigen::Map<Lanes<T, n>> array(T* data, std::integral_constant<int, n>) {
  return Eigen::Map<Lanes<T, n>>(data);
}
template <class T, int n>
Eigen::Map<const Lanes<T, n>> array(const T* data, std::integral_constant<int, n>) {
  return Eigen::Map<const Lanes<T, n>>(data);
}

/// What Eigen's vectorised exp gives for -infinity: on some machines a number near the smallest, not the 0 that something masked must have.
template <class T>
inline const T least_exponential = [] {
  const Lanes<T, 16> y = Lanes<T, 16>::Constant(-std::numeric_limits<T>::infinity()).exp();
  return y[0];
}();
/// exp(x), and 0 for -infinity.
template <class X>
auto exponential(const X& x) {
  if constexpr (X::SizeAtCompileTime == 1)
    return x.exp();
  else
    return x.exp() - least_exponential<typename X::Scalar>;
}

// Functions of their own, so that what calls them compiles quickly.

/// out = exp(x - subtracted); out may be x.
template <class T>
[[gnu::noinline, gnu::flatten]] void exponentials(const T* x, T subtracted, T* out, Index n) {
  in_registers(n, [=](Index i, auto k) { array(out + i, k) = exponential(array(x + i, k) - subtracted); });
}
/// The sum of value(i, k), k elements from i on, over all elements: in the same order wherever the elements lie in memory.
template <class T, class Value>
[[gnu::always_inline]] inline T sum_in_registers(Index count, Value value) {
  Index i = 0;
  Lanes<T, 64> several = Lanes<T, 64>::Zero();
  for (; i + 64 <= count; i += 64) several += value(i, std::integral_constant<int, 64>{});
  Lanes<T, 16> sums = (several.template segment<16>(0) + several.template segment<16>(16)) + (several.template segment<16>(32) + several.template segment<16>(48));
  for (; i + 16 <= count; i += 16) sums += value(i, std::integral_constant<int, 16>{});
  T rest = 0;
  for (; i < count; ++i) rest += value(i, std::integral_constant<int, 1>{})[0];
  return sums.sum() + rest;
}
template <class T>
[[gnu::noinline, gnu::flatten]] T sum_of(const T* x, Index n) {
  return sum_in_registers<T>(n, [=](Index i, auto k) { return array(x + i, k); });
}
template <class T>
[[gnu::noinline, gnu::flatten]] T inner_product(const T* x, const T* y, Index n) {
  return sum_in_registers<T>(n, [=](Index i, auto k) { return array(x + i, k) * array(y + i, k); });
}
/// The largest of n numbers, -infinity of none; what is no number is the largest.
template <class T>
[[gnu::noinline, gnu::flatten]] T largest_of(const T* x, Index n) {
  using Several = Eigen::Array<T, 64, 1>;
  const Eigen::internal::scalar_max_op<T, T, Eigen::PropagateNaN> larger;
  Several several = Several::Constant(-std::numeric_limits<T>::infinity());
  Index i = 0;
  for (; i + 64 <= n; i += 64) several = several.binaryExpr(Eigen::Map<const Several>(x + i), larger).eval();
  T largest = several.template maxCoeff<Eigen::PropagateNaN>();
  for (; i < n; ++i) largest = larger(largest, x[i]);
  return largest;
}
/// The sum of n numbers: exact to a few roundings however many there are, and the same for the same numbers.
template <class T>
double total(const T* x, Index n) {
  double sum = 0;
  in_chunks(n, [&](Index i, Index count) { sum += static_cast<double>(sum_of(x + i, count)); });
  return sum;
}

}  // namespace parallel::cpu
