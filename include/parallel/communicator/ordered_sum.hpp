// Sums and maxima of several ranks' terms, taken in rank order, so that every backend gives the same bits.
#pragma once
#include <cstring>
#include <type_traits>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

template <class T>
inline constexpr std::int64_t line = 64 / sizeof(T);  ///< elements that are added at a time, so that loads and stores overlap

/// sums[i] = ((terms[0] + terms[1]) + ...)[first + i] for `width` elements.
template <std::int64_t width, class T, class Combine>
inline void add(T* __restrict__ sums, const T* const* terms, int n, std::int64_t first, Combine plus) {
  std::memcpy(sums, terms[0] + first, sizeof(T) * width);
  for (int r = 1; r < n; ++r) {
    const T* term = terms[r] + first;
    for (std::int64_t i = 0; i < width; ++i) sums[i] = plus(sums[i], term[i]);
  }
}

/// Writes a line past the caches, which saves reading what is overwritten.
template <class T>
inline void stream(T* out, const T* sums) {
#ifdef __SSE2__
  for (std::size_t i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(out) + i, _mm_load_si128(reinterpret_cast<const __m128i*>(sums) + i));
#else
  std::memcpy(out, sums, 64);
#endif
}

/// The number of terms is `fixed`, or n where that is 0.
template <int fixed, class T, class Combine>
inline void combine(T* const* outs, int copies, const T* const* terms, int n, std::int64_t count, bool past_caches, Combine plus) {
  constexpr int most = 16;
  if (fixed > 0) n = fixed;
  T* to[most];  // copies of the pointers: no store can change them
  const T* from[most];
  const bool few = n <= most && copies <= most;
  if (few) {
    for (int j = 0; j < copies; ++j) to[j] = outs[j];
    for (int r = 0; r < n; ++r) from[r] = terms[r];
    outs = to, terms = from;
  }
  alignas(64) T sums[line<T>];
  std::int64_t i = 0;
  for (; i + line<T> <= count; i += line<T>) {
    add<line<T>>(sums, terms, n, i, plus);
    for (int j = 0; j < copies; ++j)
      if (past_caches)
        stream(outs[j] + i, sums);
      else
        std::memcpy(outs[j] + i, sums, sizeof sums);
  }
  for (; i < count; ++i) {
    add<1>(sums, terms, n, i, plus);
    for (int j = 0; j < copies; ++j) outs[j][i] = sums[0];
  }
#ifdef __SSE2__
  if (past_caches) _mm_sfence();
#endif
}

template <class T, class Combine>
inline void combine(void* const* outs, int copies, const void* const* terms, int n, std::int64_t count, bool past_caches, Combine plus) {
  const auto to = reinterpret_cast<T* const*>(outs);
  const auto from = reinterpret_cast<const T* const*>(terms);
  if (n == 2) return combine<2>(to, copies, from, n, count, past_caches, plus);
  if (n == 4) return combine<4>(to, copies, from, n, count, past_caches, plus);
  combine<0>(to, copies, from, n, count, past_caches, plus);
}

}  // namespace ordered
