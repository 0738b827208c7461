// Draws from logits: histograms of the digits of logits, thresholds, and the largest of perturbed logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include <parallel/device/classes.hpp>
#include <parallel/device/cuda/operation/random.hpp>
#include <parallel/device/order_of.hpp>
#include <parallel/device/stream.hpp>

namespace parallel::internals::cuda {

/// Rows of a rank's logits.
struct LogitRows {
  const void* logits;
  DType dtype;
  Index length;  ///< of a row
  static LogitRows of(const Call& call) {
    const View& x = call.operands[0];
    return {x.data, x.dtype, x.size[x.rank - 1]};
  }
  static Index count(const Call& call) { return call.operands[0].extent(0, call.operands[0].rank - 1); }
  PARALLEL_DEVICE float at(Index row, Index i) const {
    const Index from = row * length + i;
    return dtype == DType::f64    ? static_cast<float>(static_cast<const double*>(logits)[from])
           : dtype == DType::bf16 ? widen(static_cast<const bfloat16*>(logits)[from])
           : dtype == DType::f16  ? widen(static_cast<const float16*>(logits)[from])
                                  : static_cast<const float*>(logits)[from];
  }
};

/// Masses are added up as whole numbers, so that their order does not show: units of 2^-42, of as many classes as there
/// may be.
struct DigitHistogram {
  static constexpr int threads = 1024, bins = operation::sample_bins;
  static constexpr double unit = 1.0 / (std::int64_t{1} << 42);
  static constexpr std::size_t shared = bins * sizeof(unsigned long long) + bins * sizeof(int);
  LogitRows rows;
  ClassColumns columns;
  const double* temperature;
  const void* largest;  ///< of every row; or none: logits are counted
  DType largest_dtype;
  const Threshold *state, *floor;
  double* histogram;
  int shift;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index r = block.index;
    auto* const sums = block.template shared<unsigned long long>();
    // how many masses are no numbers
    int* const numberless = block.template shared<int>(bins * sizeof(unsigned long long));
    block.each(bins, [&](Index bin) {
      sums[bin] = 0;
      numberless[bin] = 0;
    });
    block.sync();
    const double most = largest != nullptr ? static_cast<double>(LogitRows{largest, largest_dtype, 1}.at(r, 0)) : 0;
    block.each(columns.own, [&](Index i) {
      const float logit = rows.at(r, i);
      const std::uint32_t ordinal = order_of(logit);
      if (floor != nullptr && !passes(logit, floor[r])) return;
      if (state != nullptr && (ordinal ^ static_cast<std::uint32_t>(state[r].digits)) >> (shift + 8) != 0) return;
      const std::uint32_t bin = ordinal >> shift & (bins - 1);
      const double mass = largest != nullptr ? std::exp((static_cast<double>(logit) - most) / *temperature) : 1;
      if (mass >= 0 && mass <= 1)
        add_to(sums[bin], static_cast<unsigned long long>(mass / unit));
      else
        add_to(numberless[bin], 1);
    });
    block.sync();
    block.each(bins, [&](Index bin) {
      histogram[r * bins + bin] =
          numberless[bin] > 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(sums[bin]) * unit;
    });
  }
};
/// (logits, scalars[, max][, state][, floor]). Floor: 4 bytes per logit in f32, by one block a row.
inline void digit_histogram(const Call& call) {
  const operation::Drawing how(call.ints);
  int next = 2;
  const View largest = how.by_mass != 0 ? call.operands[next++] : View{};
  const auto* const state = how.digit > 0 ? call.operands[next++].as<const Threshold>() : nullptr;
  const auto* const floor = next < call.operands.size() ? call.operands[next].as<const Threshold>() : nullptr;
  launch(gpu(call).stream(), LogitRows::count(call),
         DigitHistogram{LogitRows::of(call),
                        {call.operands[0], how.classes},
                        call.operands[1].as<const double>() + how.temperature,
                        largest.data,
                        largest.dtype,
                        state,
                        floor,
                        call.results[0].as<double>(),
                        shift_of(how)},
         DigitHistogram::shared);
}

struct Narrow {
  static constexpr int threads = 256, bins = operation::sample_bins;
  static constexpr std::size_t shared = bins * sizeof(double);
  const double *histogram, *limit;
  const Threshold* state;  ///< or none: at the first digit
  Threshold* result;
  bool by_mass;
  int shift;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index r = block.index;
    double* const counts = block.template shared<double>();
    block.each(bins, [&](Index bin) { counts[bin] = histogram[r * bins + bin]; });
    block.sync();
    block.each(1, [&](Index) {
      result[r] = narrowed(state != nullptr ? state[r] : without_digits(counts, *limit, by_mass), counts, shift);
    });
  }
};
/// (histogram, scalars[, state]). Floor: 2 KiB a row.
inline void narrow(const Call& call) {
  const operation::Drawing how(call.ints);
  launch(gpu(call).stream(), call.results[0].elements() / 2,
         Narrow{call.operands[0].as<const double>(), call.operands[1].as<const double>() + how.limit,
                how.digit > 0 ? call.operands[2].as<const Threshold>() : nullptr, call.results[0].as<Threshold>(),
                how.by_mass != 0, shift_of(how)},
         Narrow::shared);
}

struct Draw {
  static constexpr int threads = 1024;
  LogitRows rows;
  ClassColumns columns;
  StreamOf stream_of;
  const double* temperature;
  const Threshold* threshold;  ///< or none
  double* best;
  InOrders rows_of_all;  ///< by their first logits, among those of all ranks

  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const RandomStream stream = stream_of.get();
    const double heat = *temperature;
    const Index element = rows_of_all.offset(r);
    const double found = block.maximum(columns.own, -1.0, [&](Index i) {
      const float logit = rows.at(r, i);
      if (threshold != nullptr && !passes(logit, threshold[r])) return -1.0;
      float perturbed = logit;
      if (heat > 0) {
        const std::uint32_t word = stream.word(static_cast<std::uint64_t>(element + i));
        perturbed =
            static_cast<float>(static_cast<double>(logit) / heat - std::log(-std::log((word + 0.5) / 4294967296.0)));
      }
      return draw_of(perturbed, columns.first + i);
    });
    block.each(1, [&](Index) { best[r] = found; });
  }
};
/// (logits, scalars[, threshold]). Floor: 4 bytes per logit in f32, by one block a row.
inline void draw(const Call& call) {
  const operation::Drawing how(call.ints);
  const View& x = call.operands[0];
  View rows = x;  // their first elements
  rows.size[x.rank - 1] = 1;
  const Draw body{LogitRows::of(call),
                  {x, how.classes},
                  {call, 1, {how.seed, how.step, how.draw}},
                  call.operands[1].as<const double>() + how.temperature,
                  call.operands.size() > 2 ? call.operands[2].as<const Threshold>() : nullptr,
                  call.results[0].as<double>(),
                  InOrders(rows)};
  launch(gpu(call).stream(), LogitRows::count(call), body);
}

struct Drawn {
  const double* draws;
  int* result;
  PARALLEL_DEVICE void operator()(Index i) const { result[i] = class_of(draws[i]); }
};
/// The class that a draw carries; -1 where a logit was NaN.
inline void drawn(const Call& call) {
  launch_each(gpu(call).stream(), call.results[0].elements(),
              Drawn{call.operands[0].as<const double>(), call.results[0].as<int>()});
}

}  // namespace parallel::internals::cuda
