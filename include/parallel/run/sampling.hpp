// Choosing the next token from logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include <parallel/device/random.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// A token with the probability softmax(logits / temperature), drawn by counter: (seed, position) gives the same token
/// everywhere.
template <class T>
int sample_token(const T* logits, int vocabulary, double temperature, std::uint64_t seed, std::uint64_t position) {
  const auto largest = static_cast<double>(*std::max_element(logits, logits + vocabulary));
  double total = 0;
  for (int v = 0; v < vocabulary; ++v) total += std::exp((static_cast<double>(logits[v]) - largest) / temperature);
  double left = random_uniform(seed, position, 0) * total;
  for (int v = 0; v < vocabulary; ++v) {
    left -= std::exp((static_cast<double>(logits[v]) - largest) / temperature);
    if (left < 0) return v;
  }
  return vocabulary - 1;
}

}  // namespace parallel::internals

namespace parallel {
using internals::sample_token;
}  // namespace parallel
