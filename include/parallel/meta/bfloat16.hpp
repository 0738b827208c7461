// bfloat16: the upper half of a float. Stored in two bytes, computed with in float.
#pragma once
#include <bit>
#include <cstdint>

namespace parallel {

struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  /// The nearest; of two the even. A NaN stays one.
  constexpr explicit bfloat16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = word + 0x7FFF + ((word >> 16) & 1);
    bits = static_cast<std::uint16_t>((x != x ? word | 0x400000 : rounded) >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace parallel
