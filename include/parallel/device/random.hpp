// Random numbers by counter: a number depends on seed, stream and index only, so every mesh and every order of
// computation draws the same.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace parallel::internals {

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011): four random words for a 128-bit counter and a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}
constexpr std::array<std::uint32_t, 4> random_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}
/// 53 bits of two words, in (0, 1).
constexpr double random_fraction(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>((std::uint64_t{high} << 21) ^ (low >> 11)) + 0.5) / 9007199254740992.0;
}
constexpr double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto w = random_words(seed, stream, index);
  return random_fraction(w[0], w[1]);
}
/// Normal with mean 0 and deviation 1 (Box and Muller, 1958).
inline double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto w = random_words(seed, stream, index);
  return std::sqrt(-2 * std::log(random_fraction(w[0], w[1]))) *
         std::cos(2 * std::numbers::pi * random_fraction(w[2], w[3]));
}

}  // namespace parallel::internals

namespace parallel {
using internals::random_normal;
using internals::random_uniform;
}  // namespace parallel
