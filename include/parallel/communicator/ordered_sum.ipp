// How terms are added, a vector at a time; ordered_sum.hpp says what.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include <parallel/algebra/halves.hpp>
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/communicator/past_caches.hpp>
#include <parallel/meta/product_library.hpp>

namespace parallel::internals {

namespace ordered {

struct Sum {
  template <class T>
  void operator()(T& sum, const T& term) const {
    sum += term;
  }
};
/// NaN if either is.
struct Maximum {
  template <class T>
  void operator()(T& most, const T& term) const {
    most = ((most >= term) | (most != most)) ? most : term;
  }
};

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif
/// What is summed and written before the next is read, so that the loads of one overlap the stores of another.
template <class T>
using Vector [[gnu::vector_size(vector_bytes)]] = T;

/// sum = ((terms[0] + terms[1]) + ...)[first...], one vector or one element.
template <class T, class Part, class Combine>
inline void add(Part& sum, const void* const* terms, int n, std::int64_t first, Combine plus) {
  std::memcpy(&sum, static_cast<const T*>(terms[0]) + first, sizeof sum);
  for (int r = 1; r < n; ++r) {
    Part term;
    std::memcpy(&term, static_cast<const T*>(terms[r]) + first, sizeof term);
    plus(sum, term);
  }
}

/// `fixed` is the number of terms where the loop over them is unrolled, or 0. Never inlined: g++ 12 would warn of
/// branches not taken.
template <class T, int fixed, class Combine>
[[gnu::noinline]] void combine(void* const* outs, int copies, const void* const* terms, int n, std::int64_t count,
                               bool past_caches, Combine plus) {
  constexpr int most = 8;
  const void* from[most];  // of their own: no store can change these pointers
  void* to[most];
  if (n <= most && copies <= most) {
    for (int r = 0; r < n; ++r) from[r] = terms[r];
    for (int j = 0; j < copies; ++j) to[j] = outs[j];
    terms = from;
    outs = to;
  }
  constexpr std::int64_t width = vector_bytes / sizeof(T);
  std::int64_t i = 0;
  for (; i + width <= count; i += width) {
    Vector<T> sum;
    add<T>(sum, terms, fixed > 0 ? fixed : n, i, plus);
    for (int j = 0; j < copies; ++j)
      if (past_caches)
        stream(static_cast<T*>(outs[j]) + i, sum);
      else
        std::memcpy(static_cast<T*>(outs[j]) + i, &sum, sizeof sum);
  }
  for (; i < count; ++i) {
    T sum;
    add<T>(sum, terms, n, i, plus);
    for (int j = 0; j < copies; ++j) static_cast<T*>(outs[j])[i] = sum;
  }
  if (past_caches) streamed();
}

/// The same of halves, some at a time as floats.
template <class Combine>
void combine_halves(DType dtype, void* const* outs, int copies, const void* const* terms, int n, std::int64_t count,
                    Combine plus) {
  constexpr std::int64_t most = 512;
  float sum[most], term[most];
  for (std::int64_t i = 0; i < count; i += most) {
    const std::int64_t some = count - i < most ? count - i : most;
    halves::widen(dtype, static_cast<const std::uint16_t*>(terms[0]) + i, sum, some);
    for (int r = 1; r < n; ++r) {
      halves::widen(dtype, static_cast<const std::uint16_t*>(terms[r]) + i, term, some);
      for (std::int64_t e = 0; e < some; ++e) plus(sum[e], term[e]);
    }
    for (int j = 0; j < copies; ++j) halves::round(dtype, sum, static_cast<std::uint16_t*>(outs[j]) + i, some);
  }
}

/// Whether to write past the caches: so many bytes, and not over what has just been read.
inline bool past_caches(void* const* outs, int copies, const void* const* terms, int n, std::int64_t bytes,
                        std::int64_t from) {
  if (bytes * copies < from) return false;
  for (int j = 0; j < copies; ++j) {
    if (reinterpret_cast<std::uintptr_t>(outs[j]) % 16 != 0) return false;
    for (int r = 0; r < n; ++r)
      if (outs[j] == terms[r]) return false;
  }
  return true;
}

}  // namespace ordered

PARALLEL_INLINE void ordered_sum(DType dtype, bool maximum, void* const* outs, int copies, const void* const* terms,
                                 int n, std::int64_t count, std::int64_t all, std::int64_t past_caches_from) {
  if (is_half(dtype))
    return maximum ? ordered::combine_halves(dtype, outs, copies, terms, n, count, ordered::Maximum{})
                   : ordered::combine_halves(dtype, outs, copies, terms, n, count, ordered::Sum{});
  const std::int64_t bytes = std::max(count, all) * bytes_of(dtype);
  const bool past = ordered::past_caches(outs, copies, terms, n, bytes, past_caches_from);
  const auto combine = [&]<class T, class Combine>(T, Combine plus) {
    if (n == 2) return ordered::combine<T, 2>(outs, copies, terms, n, count, past, plus);
    if (n == 4) return ordered::combine<T, 4>(outs, copies, terms, n, count, past, plus);
    ordered::combine<T, 0>(outs, copies, terms, n, count, past, plus);
  };
  if (dtype == DType::f32) return maximum ? combine(float{}, ordered::Maximum{}) : combine(float{}, ordered::Sum{});
  if (dtype == DType::f64) return maximum ? combine(double{}, ordered::Maximum{}) : combine(double{}, ordered::Sum{});
  // unsigned sums wrap around
  maximum ? combine(std::int32_t{}, ordered::Maximum{}) : combine(std::uint32_t{}, ordered::Sum{});
}

PARALLEL_INLINE std::string numerics() {
#ifdef __FMA__
  const char* const fused = " with fused multiplication and addition";
#else
  const char* const fused = "";
#endif
  return "compiler " __VERSION__ ", vectors of " + std::to_string(ordered::vector_bytes) + " bytes" + fused +
         ", products of " + product_library();
}

}  // namespace parallel::internals
