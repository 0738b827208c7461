// A stand-in for CUDA's header of this name: the type, and what converts it.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits(raw.x) {}
  constexpr __nv_bfloat16(float f) : bits(rounded(f)) {}
  constexpr __nv_bfloat16(double d) : bits(rounded(static_cast<float>(d))) {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  constexpr operator __nv_bfloat16_raw() const { return {bits}; }

 private:
  /// To the nearest, halves to the even one; any NaN is 0x7fff.
  static constexpr unsigned short rounded(float f) {
    if (f != f) return 0x7fff;
    const auto u = std::bit_cast<std::uint32_t>(f);
    return static_cast<unsigned short>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  unsigned short bits;
};
typedef __nv_bfloat16 nv_bfloat16;

constexpr __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
constexpr __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
constexpr __nv_bfloat16 __double2bfloat16(double d) { return __nv_bfloat16(d); }
constexpr float __bfloat162float(__nv_bfloat16 b) { return static_cast<float>(b); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return static_cast<__nv_bfloat16_raw>(b).x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { return __nv_bfloat16(__nv_bfloat16_raw{u}); }
