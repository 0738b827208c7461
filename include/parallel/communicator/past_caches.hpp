// Writes that go past the caches to memory: where what is overwritten need not be read, and where another core reads
// what is written. Between cores that share no cache a line that one has changed costs the other ten times what memory
// does.
#pragma once
#include <cstddef>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace parallel::internals {

/// Writes a vector of 16 bytes or some of them, to where a multiple of 16 bytes begins.
template <class Part>
inline void stream(void* out, const Part& part) {
#ifdef __SSE2__
  __m128i parts[sizeof part / 16];
  std::memcpy(parts, &part, sizeof part);
  for (const __m128i& p : parts) _mm_stream_si128(static_cast<__m128i*>(out) + (&p - parts), p);
#else
  std::memcpy(out, &part, sizeof part);
#endif
}
/// What was streamed is seen by whoever sees what this thread writes from now on.
inline void streamed() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

/// A copy to where a multiple of 64 bytes begins, for another core to read.
inline void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  struct Line {
    unsigned char bytes[line];
  };
  std::size_t i = 0;
  for (; i + line <= bytes; i += line) {
    Line one;
    std::memcpy(&one, from + i, line);
    stream(to + i, one);
  }
  if (bytes > i) std::memcpy(to + i, from + i, bytes - i);
  streamed();
}

}  // namespace parallel::internals
