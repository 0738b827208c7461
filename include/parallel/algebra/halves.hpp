// Many elements of bf16 or f16 to floats, and back to the nearest.
#pragma once
#include <cstdint>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include <parallel/algebra/type.hpp>

namespace parallel::internals::halves {

inline void widen(DType dtype, const void* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  if (dtype == DType::bf16) {
    for (const auto* const x = static_cast<const bfloat16*>(from); i < n; ++i) to[i] = static_cast<float>(x[i]);
    return;
  }
  const auto* const x = static_cast<const float16*>(from);
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) to[i] = static_cast<float>(x[i]);
}
inline void round(DType dtype, const float* from, void* to, std::int64_t n) {
  std::int64_t i = 0;
  if (dtype == DType::bf16) {
    for (auto* const x = static_cast<bfloat16*>(to); i < n; ++i) x[i] = bfloat16(from[i]);
    return;
  }
  auto* const x = static_cast<float16*>(to);
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(x + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) x[i] = float16(from[i]);
}

}  // namespace parallel::internals::halves
