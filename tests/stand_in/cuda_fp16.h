// A stand-in for CUDA's header of this name: the type, and what converts it.
#pragma once
#include <cmath>
#include <cstdint>

struct __half_raw {
  unsigned short x;
};

struct __half {
  __half() = default;
  __half(const __half_raw& raw) : bits(raw.x) {}
  __half(float f) : bits(rounded(f)) {}
  operator float() const {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent == 31 ? (mantissa == 0 ? HUGE_VALF : std::nanf(""))
                                      : std::ldexp(static_cast<float>(mantissa + (exponent > 0 ? 1024 : 0)),
                                                   (exponent > 0 ? exponent : 1) - 25);
    return (bits & 0x8000) != 0 ? -size : size;
  }
  operator __half_raw() const { return {bits}; }

 private:
  /// To the nearest, halves to the even one; any NaN is 0x7fff.
  static unsigned short rounded(float f) {
    if (std::isnan(f)) return 0x7fff;
    const unsigned sign = std::signbit(f) ? 0x8000 : 0;
    if (!(std::fabs(f) < 65520)) return static_cast<unsigned short>(sign | 0x7c00);
    int exponent = 0;
    static_cast<void>(std::frexp(f, &exponent));
    const int last = exponent > -13 && f != 0 ? exponent - 11 : -24;  // what the last bit is worth, as a power of two
    const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(std::fabs(f), -last)));
    return static_cast<unsigned short>(sign | (static_cast<unsigned>(last + 24) * 1024 + units));
  }
  unsigned short bits;
};

inline __half __float2half(float f) { return __half(f); }
inline float __half2float(__half h) { return static_cast<float>(h); }
