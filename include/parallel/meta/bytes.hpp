// Bytes as they are written: 5_MiB.
#pragma once
#include <cstdint>

namespace parallel {
inline namespace literals {

constexpr std::int64_t operator""_KiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 10; }
constexpr std::int64_t operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 20; }
constexpr std::int64_t operator""_GiB(unsigned long long n) { return static_cast<std::int64_t>(n) << 30; }

}  // namespace literals
}  // namespace parallel
