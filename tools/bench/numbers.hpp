// The numbers that peers begin with, each making them for itself, and what is compared before anything is timed.
#pragma once
#include <cstdint>
#include <string>

namespace bench {

/// A tensor's numbers are uniform around `mean`, at most `spread` away.
struct Numbers {
  const char* name;
  float mean, spread;
};
/// Element `index` of the tensor `which` of those that a model numbers; layers lie one behind the other.
inline float number(const Numbers& n, int which, std::int64_t index) {
  std::uint32_t x = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(which) * 0x9e3779b9u;
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  return n.mean + n.spread * static_cast<float>(static_cast<double>(x) / 2147483648.0 - 1);
}

/// The loss, the norm of all gradients, and the norm of each.
struct Checked {
  std::string name;
  double value;
};

}  // namespace bench
