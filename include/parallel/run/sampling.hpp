// Choosing the next token from logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include <parallel/device/random.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// A token with the probability softmax(logits / temperature), drawn by counter: (seed, position) gives the same token
/// everywhere; at temperature 0, or of infinite logits, the first of the likeliest. -1 where a logit is no number.
/// Throws Misuse for no logits and for a temperature that is none.
template <class T>
int sample_token(const T* logits, int vocabulary, double temperature, std::uint64_t seed, std::uint64_t position) {
  if (logits == nullptr || vocabulary < 1)
    throw Misuse("a token is drawn of " +
                 (logits == nullptr ? "a null pointer" : std::to_string(vocabulary) + " logits") +
                 "; give the logits of one or more");
  if (!(temperature >= 0 && std::isfinite(temperature)))
    throw Misuse("a token is drawn at the temperature " + shortest(temperature) + "; give a number from 0 on");
  if (std::any_of(logits, logits + vocabulary, [](T logit) { return std::isnan(static_cast<double>(logit)); }))
    return -1;
  const T* const likeliest = std::max_element(logits, logits + vocabulary);
  if (temperature == 0 || std::isinf(static_cast<double>(*likeliest))) return static_cast<int>(likeliest - logits);
  const auto largest = static_cast<double>(*likeliest);
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
