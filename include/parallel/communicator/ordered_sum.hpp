// Sums and maxima of several ranks' terms, taken in rank order, so that every backend gives the same bits.
#pragma once
#include <cstring>
#include <type_traits>

#include <parallel/algebra/type.hpp>

namespace parallel {

namespace ordered {

template <class T>
struct Sum {
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));  // wraps around
    else
      return a + b;
  }
};

/// NaN if either is.
template <class T>
struct Maximum {
  constexpr T operator()(T a, T b) const { return a >= b || a != a ? a : b; }
};

/// sums[i] = ((terms[0] + terms[1]) + ...)[first + i] for `width` elements, a constant so that the loops vectorise at any optimisation level.
template <std::int64_t width, class T, class Combine>
inline void add(T* __restrict__ sums, const void* const* terms, int n, std::int64_t first, Combine plus) {
  const auto term = [&](int rank) { return static_cast<const T*>(terms[rank]) + first; };
  const T* a = term(0);
  int done = 1;
  if (n >= 4) {
    const T *b = term(1), *c = term(2), *d = term(3);
    for (std::int64_t i = 0; i < width; ++i) sums[i] = plus(plus(plus(a[i], b[i]), c[i]), d[i]);
    done = 4;
  } else if (n >= 2) {
    const T* b = term(1);
    for (std::int64_t i = 0; i < width; ++i) sums[i] = plus(a[i], b[i]);
    done = 2;
  } else {
    std::memcpy(sums, a, sizeof(T) * width);
  }
  for (; done < n; ++done) {
    const T* b = term(done);
    for (std::int64_t i = 0; i < width; ++i) sums[i] = plus(sums[i], b[i]);
  }
}

template <class T, class Combine>
inline void combine(void* const* outs, int copies, const void* const* terms, int n, std::int64_t count, Combine plus) {
  constexpr std::int64_t block = 4096 / sizeof(T), line = 64 / sizeof(T);
  alignas(64) T sums[block];  // a buffer of its own: no store can touch a term that is still to be read
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t length = count - first < block ? count - first : block;
    std::int64_t i = 0;
    if (length == block) add<block>(sums, terms, n, first, plus), i = block;
    for (; i + line <= length; i += line) add<line>(sums + i, terms, n, first + i, plus);
    for (; i < length; ++i) add<1>(sums + i, terms, n, first + i, plus);
    for (int j = 0; j < copies; ++j) std::memcpy(static_cast<T*>(outs[j]) + first, sums, sizeof(T) * static_cast<std::size_t>(length));
  }
}

}  // namespace ordered

/// Writes the sum (or the maximum) of n terms of `count` elements to each of `copies` buffers. A buffer may be one of the terms.
/// Not for bf16, which communicators refuse.
inline void ordered_sum(DType dtype, bool maximum, void* const* outs, int copies, const void* const* terms, int n, std::int64_t count) {
  const auto with = [&]<class T>(T) {
    if (maximum)
      ordered::combine<T>(outs, copies, terms, n, count, ordered::Maximum<T>{});
    else
      ordered::combine<T>(outs, copies, terms, n, count, ordered::Sum<T>{});
  };
  if (dtype == DType::f64) return with(double{});
  if (dtype == DType::i32) return with(int{});
  with(float{});
}

}  // namespace parallel
