// Bytes as they are written: 5_MiB.
#pragma once
#include <cstdint>

namespace parallel {
inline namespace literals {

constexpr std::int64_t operator""_KiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 10; }
constexpr std::int64_t operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 20; }
constexpr std::int64_t operator""_GiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }

// Of thousands, or of 1024? Refused, where a program has no such unit of its own.
#define PARALLEL_UNIT(unit)                                                                                     \
  template <char... digits>                                                                                     \
  constexpr std::int64_t operator""##unit() {                                                                   \
    static_assert(sizeof...(digits) > 99,                                                                       \
                  "parallel: bytes are counted by powers of 1024; write 64_KiB, 64_MiB, 2_GiB, or the number"); \
    return 0;                                                                                                   \
  }
PARALLEL_UNIT(_KB)
PARALLEL_UNIT(_MB)
PARALLEL_UNIT(_GB)
#undef PARALLEL_UNIT

}  // namespace literals
}  // namespace parallel
