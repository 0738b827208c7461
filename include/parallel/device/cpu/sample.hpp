// Draws from logits: histograms of the digits of logits, thresholds, and the largest of perturbed logits.
#pragma once
#include <cmath>

#include <parallel/device/classes.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/order_of.hpp>

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
  const ClassColumns columns;
  const Index count;

  explicit LogitRows(const Call& call)
      : logits(call.operands[0]),
        how(call.ints),
        scalars(call.operands[1].as<const double>()),
        columns(logits, how.classes),
        count(logits.extent(0, logits.rank - 1)) {}
  float at(Index row, Index i) const {
    return static_cast<float>(number(logits, row * logits.size[logits.rank - 1] + i));
  }
  double temperature() const { return scalars[how.temperature]; }
};
/// (logits, scalars[, max][, state][, floor])
inline void digit_histogram(const Call& call) {
  const LogitRows rows(call);
  const int shift = shift_of(rows.how);
  const bool by_mass = rows.how.by_mass != 0;
  int next = 2;
  const View* const largest = by_mass ? &call.operands[next++] : nullptr;
  const auto* const state = rows.how.digit > 0 ? call.operands[next++].as<const Threshold>() : nullptr;
  const auto* const floor = next < call.operands.size() ? call.operands[next].as<const Threshold>() : nullptr;
  double* histogram = call.results[0].as<double>();
  std::fill_n(histogram, call.results[0].elements(), 0.0);
  for (Index r = 0; r < rows.count; ++r, histogram += operation::sample_bins)
    for (Index i = 0; i < rows.columns.own; ++i) {
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
  const double *histogram = call.operands[0].as<const double>(), limit = call.operands[1].as<const double>()[how.limit];
  for (Index r = 0; r < call.results[0].elements() / 2; ++r, histogram += operation::sample_bins) {
    const Threshold before =
        how.digit > 0 ? call.operands[2].as<const Threshold>()[r] : without_digits(histogram, limit, how.by_mass != 0);
    call.results[0].as<Threshold>()[r] = narrowed(before, histogram, shift_of(how));
  }
}
/// (logits, scalars[, threshold])
inline void draw(const Call& call) {
  const LogitRows rows(call);
  const auto* const threshold = call.operands.size() > 2 ? call.operands[2].as<const Threshold>() : nullptr;
  const RandomStream stream = StreamOf(call, 1, {rows.how.seed, rows.how.step, rows.how.draw}).get();
  const double temperature = rows.temperature();
  const Index width = rows.logits.size[rows.logits.rank - 1];
  double* best = call.results[0].as<double>();
  std::fill_n(best, rows.count, -1.0);
  each_block(rows.logits, [&](Index at, Index within, Index count, std::uint64_t block) {
    std::uint32_t words[RandomStream::block];
    if (temperature > 0) words_of_block(stream, block, words);
    for (Index j = 0; j < count; ++j) {
      const Index r = (at + j) / width, i = (at + j) % width;
      if (i >= rows.columns.own) continue;
      const float logit = rows.at(r, i);
      if (threshold != nullptr && !passes(logit, threshold[r])) continue;
      const double noise = temperature > 0 ? -std::log(-std::log((words[within + j] + 0.5) / 4294967296.0)) : 0;
      const float perturbed =
          temperature > 0 ? static_cast<float>(static_cast<double>(logit) / temperature + noise) : logit;
      best[r] = std::max(best[r], draw_of(perturbed, rows.columns.first + i));
    }
  });
}
/// The class that a draw carries; -1 where a logit was NaN.
inline void drawn(const Call& call) {
  const double* x = call.operands[0].as<const double>();
  int* const classes = call.results[0].as<int>();
  for (Index i = 0; i < call.results[0].elements(); ++i) classes[i] = class_of(x[i]);
}

}  // namespace parallel::internals::cpu
