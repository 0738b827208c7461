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

/// An intermediate of at most `chunk` elements, on the stack.
template <class T>
using Chunk = Eigen::Array<T, Eigen::Dynamic, 1, 0, chunk, 1>;

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

// The loops below are functions of their own, so that what calls them compiles quickly.

/// out = exp(x - subtracted); out may be x.
template <class T>
[[gnu::noinline]] void exponentials(const T* x, T subtracted, T* out, Index n) {
  array(out, n) = (array(x, n) - subtracted).exp();
}
template <class T>
[[gnu::noinline]] T sum_of(const T* x, Index n) {
  return array(x, n).sum();
}
template <class T>
[[gnu::noinline]] T inner_product(const T* x, const T* y, Index n) {
  return (array(x, n) * array(y, n)).sum();
}
/// The sum of n numbers: exact to a few roundings however many there are, and the same for the same numbers.
template <class T>
double total(const T* x, Index n) {
  double sum = 0;
  in_chunks(n, [&](Index i, Index count) { sum += static_cast<double>(sum_of(x + i, count)); });
  return sum;
}

}  // namespace parallel::cpu
