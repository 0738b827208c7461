// Logits as whole numbers that order as they do, what is known of a threshold among them, and draws of their classes.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

#include <parallel/operation/sample.hpp>

namespace parallel::internals {

/// A float's bits as a number that orders as it does; NaN is the largest.
constexpr std::uint32_t order_of(float x) {
  if (x != x) return 0xFFFFFFFFU;
  const auto bits = std::bit_cast<std::uint32_t>(x == 0 ? 0.0F : x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
/// By how many bits a digit of such a number is shifted.
constexpr int shift_of(const operation::Drawing& how) { return 24 - 8 * static_cast<int>(how.digit); }

/// What is known of a threshold: its digits so far, those behind them zeros, and what is left of the limit for those.
struct Threshold {
  double digits = 0, left = 0;
};
constexpr bool passes(float logit, const Threshold& t) { return static_cast<double>(order_of(logit)) >= t.digits; }
/// Before its first digit, of which this is the histogram: the limit, or how much of all mass it is.
constexpr Threshold without_digits(const double* histogram, double limit, bool by_mass) {
  double all = by_mass ? 0 : 1;
  for (int bin = 0; by_mass && bin < operation::sample_bins; ++bin) all += histogram[bin];
  // at temperature 0, or where a logit is NaN, no mass is a number
  const bool limits = limit > 0 && (!by_mass || limit < 1) && all - all == 0;
  return {0, limits ? limit * all : std::numeric_limits<double>::infinity()};
}
/// With one digit more.
constexpr Threshold narrowed(Threshold t, const double* histogram, int shift) {
  int bin = operation::sample_bins - 1;
  for (; bin > 0 && histogram[bin] < t.left; --bin) t.left -= histogram[bin];
  t.digits += static_cast<double>(static_cast<std::uint32_t>(bin) << shift);
  return t;
}

/// A perturbed logit and behind it its class as one number: the largest of a row's is its draw.
constexpr double draw_of(float perturbed, std::int64_t which) {
  if (perturbed != perturbed) return std::numeric_limits<double>::infinity();
  return static_cast<double>(order_of(perturbed)) * static_cast<double>(operation::most_classes) +
         static_cast<double>(operation::most_classes - 1 - which);
}
/// The class that a draw carries; -1 where a logit was NaN.
constexpr int class_of(double draw) {
  const bool found = draw >= 0 && draw - draw == 0;
  return found
             ? static_cast<int>(operation::most_classes - 1 - static_cast<std::int64_t>(draw) % operation::most_classes)
             : -1;
}

}  // namespace parallel::internals
