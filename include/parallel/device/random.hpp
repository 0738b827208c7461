// Random numbers by counter: a number depends on seed, stream and index only, so every mesh and every order of
// computation draws the same.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

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
/// n counters at once, their words by columns: loops of a constant length, which compilers vectorise.
template <int n>
using CounterColumns = std::uint32_t[4][static_cast<std::size_t>(n)];
// Where g++ 12 knows the counters, too, it no longer vectorises the rounds: five times as long.
template <int n>
[[gnu::noinline]] inline void philox(CounterColumns<n>& counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t first = 0xD2511F53, second = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < n; ++i) {
      const std::uint32_t a = counter[0][i], b = counter[2][i];
      counter[0][i] = static_cast<std::uint32_t>(std::uint64_t{second} * b >> 32) ^ counter[1][i] ^ key[0];
      counter[2][i] = static_cast<std::uint32_t>(std::uint64_t{first} * a >> 32) ^ counter[3][i] ^ key[1];
      counter[1][i] = second * b;
      counter[3][i] = first * a;
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}
/// The counters from `first` on, whose upper half is `high`.
template <int n>
inline void philox(CounterColumns<n>& words, std::uint64_t first, std::array<std::uint32_t, 2> high,
                   std::array<std::uint32_t, 2> key) {
  for (int i = 0; i < n; ++i) {
    const std::uint64_t counter = first + static_cast<std::uint64_t>(i);
    words[0][i] = static_cast<std::uint32_t>(counter);
    words[1][i] = static_cast<std::uint32_t>(counter >> 32);
    words[2][i] = high[0];
    words[3][i] = high[1];
  }
  philox<n>(words, key);
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

}  // namespace parallel::internals

namespace parallel {
using internals::random_uniform;
}  // namespace parallel
