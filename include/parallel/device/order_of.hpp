// Logits as whole numbers that order as they do, and what is known of a threshold among them.
#pragma once
#include <bit>
#include <cstdint>

namespace parallel::internals {

/// A float's bits as a number that orders as it does; NaN is the largest.
constexpr std::uint32_t order_of(float x) {
  if (x != x) return 0xFFFFFFFFU;
  const auto bits = std::bit_cast<std::uint32_t>(x == 0 ? 0.0F : x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// What is known of a threshold: its digits so far, those behind them zeros, and what is left of the limit for those.
struct Threshold {
  double digits = 0, left = 0;
};
constexpr bool passes(float logit, const Threshold& t) { return static_cast<double>(order_of(logit)) >= t.digits; }

}  // namespace parallel::internals
