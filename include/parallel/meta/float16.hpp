// float16: half precision of IEEE 754, "binary16". Stored in two bytes, computed with in float.
#pragma once
#include <bit>
#include <cstdint>

namespace parallel {

/// 11 bits of precision where bfloat16 has 8, but from 2^-14 (in steps of 2^-24 down to 0) to 65504 only.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() = default;
  /// The nearest; of two the even. From 65520 on it is infinite; a NaN stays one.
  constexpr explicit float16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t size = word & 0x7FFFFFFF;
    std::uint32_t half = 0x7C00;
    if (size > infinite)
      half = 0x7E00 | (size >> 13 & 0x3FF);
    else if (size < smallest_normal)  // the sum's last bit is 2^-24
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    else if (size < std::bit_cast<std::uint32_t>(65520.0F))
      half = (size - rebias + 0xFFF + (size >> 13 & 1)) >> 13;
    bits = static_cast<std::uint16_t>((word >> 16 & 0x8000) | half);
  }
  constexpr explicit operator float() const {
    const auto sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, size = static_cast<std::uint32_t>(bits & 0x7FFF);
    std::uint32_t word = (size << 13) + rebias;
    if (size > 0x7C00)
      word = infinite | 0x400000 | size << 13;
    else if (size == 0x7C00)
      word = infinite;
    else if (size < 0x400)
      word = std::bit_cast<std::uint32_t>(static_cast<float>(size) * 0x1p-24F);
    return std::bit_cast<float>(sign | word);
  }

 private:
  static constexpr std::uint32_t infinite = 0x7F800000, smallest_normal = 0x38800000;
  static constexpr std::uint32_t rebias = (127 - 15) << 23;  ///< of exponents, between float's and its own
};

}  // namespace parallel
