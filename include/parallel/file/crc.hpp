// Checksums of 32 bits by which files find damage: remainders of polynomials, a byte at a time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace parallel::internals {

/// The sum of bytes, gone on with. `Polynomial`: its coefficients, the highest power in the lowest bit.
template <std::uint32_t Polynomial>
class Crc {
 public:
  Crc& add(const void* bytes, std::size_t count) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (; count > 0; --count) sum_ = sum_ >> 8 ^ remainders[(sum_ ^ *at++) & 0xff];
    return *this;
  }
  std::uint32_t value() const { return ~sum_; }

 private:
  static constexpr auto remainders = [] {
    std::array<std::uint32_t, 256> all{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      all[byte] = byte;
      for (int bit = 0; bit < 8; ++bit) all[byte] = all[byte] >> 1 ^ (all[byte] & 1 ? Polynomial : 0);
    }
    return all;
  }();
  std::uint32_t sum_ = ~0U;
};
using Crc32 = Crc<0xedb88320>;   ///< ISO 3309, as archives have it
using Crc32c = Crc<0x82f63b78>;  ///< Castagnoli's (RFC 3720), as TFRecord has it

}  // namespace parallel::internals
