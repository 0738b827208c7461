// Draws from logits: histograms of the digits of logits, thresholds, and the largest of perturbed logits.
#pragma once
#include <cmath>
#include <numeric>

#include <parallel/device/cpu/random.hpp>
#include <parallel/device/order_of.hpp>
#include <parallel/operation/sample.hpp>

namespace parallel::internals::cpu {

/// An element of floats or doubles.
inline double number(const View& view, Index i) {
  return view.dtype == DType::f64 ? view.as<const double>()[i] : static_cast<double>(view.as<const float>()[i]);
}

/// Rows of logits of either type, and what the scalars say of the draw.
struct LogitRows {
  const View& logits;
  const operation::Drawing how;
  const double* const scalars;
  const Index first, own, count;

  explicit LogitRows(const Call& call)
      : logits(call.operands[0]),
        how(call.ints),
        scalars(call.operands[1].as<const double>()),
        first(logits.offset[logits.rank - 1]),
        own(std::clamp<Index>(how.classes - first, 0, logits.size[logits.rank - 1])),
        count(logits.extent(0, logits.rank - 1)) {}
  float at(Index row, Index i) const {
    return static_cast<float>(number(logits, row * logits.size[logits.rank - 1] + i));
  }
  double temperature() const { return scalars[how.temperature]; }
};
/// (logits, scalars[, max][, state][, floor])
inline void digit_histogram(const Call& call) {
  const LogitRows rows(call);
  const int shift = 24 - 8 * static_cast<int>(rows.how.digit);
  const bool by_mass = rows.how.by_mass != 0;
  int next = 2;
  const View* const largest = by_mass ? &call.operands[next++] : nullptr;
  const auto* const state = rows.how.digit > 0 ? call.operands[next++].as<const Threshold>() : nullptr;
  const auto* const floor = next < call.operands.size() ? call.operands[next].as<const Threshold>() : nullptr;
  double* histogram = call.results[0].as<double>();
  std::fill_n(histogram, call.results[0].elements(), 0.0);
  for (Index r = 0; r < rows.count; ++r, histogram += operation::sample_bins)
    for (Index i = 0; i < rows.own; ++i) {
      const float logit = rows.at(r, i);
      const std::uint32_t key = order_of(logit);
      if (floor != nullptr && !passes(logit, floor[r])) continue;
      if (state != nullptr && (key ^ static_cast<std::uint32_t>(state[r].digits)) >> (shift + 8) != 0) continue;
      histogram[key >> shift & 255] +=
          by_mass ? std::exp((static_cast<double>(logit) - number(*largest, r)) / rows.temperature()) : 1;
    }
}
/// (histogram, scalars[, state])
inline void narrow(const Call& call) {
  const operation::Drawing how(call.ints);
  const Index rows = call.results[0].elements() / 2;
  const int shift = 24 - 8 * static_cast<int>(how.digit);
  const double* histogram = call.operands[0].as<const double>();
  for (Index r = 0; r < rows; ++r, histogram += operation::sample_bins) {
    Threshold t;
    if (how.digit > 0) {
      t = call.operands[2].as<const Threshold>()[r];
    } else {
      const double limit = call.operands[1].as<const double>()[how.limit];
      const double all = how.by_mass != 0 ? std::accumulate(histogram, histogram + operation::sample_bins, 0.0) : 1;
      // at temperature 0, or where a logit is NaN, no mass is a number
      const bool limits = limit > 0 && (how.by_mass == 0 || limit < 1) && std::isfinite(all);
      t.left = limits ? limit * all : std::numeric_limits<double>::infinity();
    }
    int bin = operation::sample_bins - 1;
    for (; bin > 0 && histogram[bin] < t.left; --bin) t.left -= histogram[bin];
    t.digits += static_cast<double>(static_cast<std::uint32_t>(bin) << shift);
    call.results[0].as<Threshold>()[r] = t;
  }
}
/// (logits, scalars[, threshold])
inline void draw(const Call& call) {
  const LogitRows rows(call);
  const auto* const threshold = call.operands.size() > 2 ? call.operands[2].as<const Threshold>() : nullptr;
  const RandomStream stream =
      RandomStream::of({rows.how.seed, rows.how.step, rows.how.draw}, rows.scalars, call.layer, call.micro_batch);
  const double temperature = rows.temperature();
  const Index width = rows.logits.size[rows.logits.rank - 1];
  double* best = call.results[0].as<double>();
  std::fill_n(best, rows.count, -1.0);
  each_block(rows.logits, [&](Index at, Index within, Index count, std::uint64_t block) {
    std::uint32_t words[RandomStream::block];
    if (temperature > 0) words_of_block(stream, block, words);
    for (Index j = 0; j < count; ++j) {
      const Index r = (at + j) / width, i = (at + j) % width;
      if (i >= rows.own) continue;
      const float logit = rows.at(r, i);
      if (threshold != nullptr && !passes(logit, threshold[r])) continue;
      const double noise = temperature > 0 ? -std::log(-std::log((words[within + j] + 0.5) / 4294967296.0)) : 0;
      const float perturbed =
          temperature > 0 ? static_cast<float>(static_cast<double>(logit) / temperature + noise) : logit;
      const double own = std::isnan(perturbed)
                             ? std::numeric_limits<double>::infinity()
                             : static_cast<double>(order_of(perturbed)) * static_cast<double>(operation::most_classes) +
                                   static_cast<double>(operation::most_classes - 1 - rows.first - i);
      best[r] = std::max(best[r], own);
    }
  });
}
/// The class that a draw carries; -1 where a logit was NaN.
inline void drawn(const Call& call) {
  const double* x = call.operands[0].as<const double>();
  for (Index i = 0; i < call.results[0].elements(); ++i)
    call.results[0].as<int>()[i] =
        std::isfinite(x[i]) && x[i] >= 0
            ? static_cast<int>(operation::most_classes - 1 - static_cast<Index>(x[i]) % operation::most_classes)
            : -1;
}

}  // namespace parallel::internals::cpu
