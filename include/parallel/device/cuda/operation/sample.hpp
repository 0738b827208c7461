// Draws from logits: histograms of the digits of logits, thresholds, and the largest of perturbed logits.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include <parallel/device/cuda/body/row.hpp>
#include <parallel/device/order_of.hpp>
#include <parallel/device/stream.hpp>
#include <parallel/operation/sample.hpp>

namespace parallel::internals::cuda {

/// Rows of a rank's logits.
struct LogitRows {
  const void* logits;
  DType dtype;
  Index length;      ///< of a row
  Index first, own;  ///< the rank's first class, and how many of its columns are classes
  static LogitRows of(const Call& call) {
    const View& x = call.operands[0];
    const Index first = x.offset[x.rank - 1], length = x.size[x.rank - 1];
    return {x.data, x.dtype, length, first,
            std::clamp<Index>(operation::Drawing(call.ints).classes - first, 0, length)};
  }
  static Index count(const Call& call) { return call.operands[0].extent(0, call.operands[0].rank - 1); }
  PARALLEL_DEVICE float at(Index row, Index i) const {
    const Index from = row * length + i;
    return dtype == DType::f64    ? static_cast<float>(static_cast<const double*>(logits)[from])
           : dtype == DType::bf16 ? widen(static_cast<const bfloat16*>(logits)[from])
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
    const double most =
        largest != nullptr ? static_cast<double>(LogitRows{largest, largest_dtype, 1, 0, 1}.at(r, 0)) : 0;
    block.each(rows.own, [&](Index i) {
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
  launch(
      gpu(call).stream(), LogitRows::count(call),
      DigitHistogram{LogitRows::of(call), call.operands[1].as<const double>() + how.temperature, largest.data,
                     largest.dtype, state, floor, call.results[0].as<double>(), 24 - 8 * static_cast<int>(how.digit)},
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
      Threshold t = state != nullptr ? state[r] : first(counts);
      int bin = bins - 1;
      for (; bin > 0 && counts[bin] < t.left; --bin) t.left -= counts[bin];
      t.digits += static_cast<double>(static_cast<std::uint32_t>(bin) << shift);
      result[r] = t;
    });
  }

 private:
  PARALLEL_DEVICE Threshold first(const double* counts) const {
    double all = by_mass ? 0 : 1;
    for (int bin = 0; by_mass && bin < bins; ++bin) all += counts[bin];
    // at temperature 0, or where a logit is NaN, no mass is a number
    const bool limits = *limit > 0 && (!by_mass || *limit < 1) && all - all == 0;
    return {0, limits ? *limit * all : std::numeric_limits<double>::infinity()};
  }
};
/// (histogram, scalars[, state]). Floor: 2 KiB a row.
inline void narrow(const Call& call) {
  const operation::Drawing how(call.ints);
  launch(gpu(call).stream(), call.results[0].elements() / 2,
         Narrow{call.operands[0].as<const double>(), call.operands[1].as<const double>() + how.limit,
                how.digit > 0 ? call.operands[2].as<const Threshold>() : nullptr, call.results[0].as<Threshold>(),
                how.by_mass != 0, 24 - 8 * static_cast<int>(how.digit)},
         Narrow::shared);
}

struct Draw {
  static constexpr int threads = 1024;
  LogitRows rows;
  const double* scalars;
  const Threshold* threshold;  ///< or none
  double* best;
  Index temperature, seed, step, draw, layer, micro_batch;
  int rank;  ///< of the rows: their extents here, and where they lie in all rows
  Index size[max_rank], offset[max_rank], whole[max_rank], classes;

  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const RandomStream stream = RandomStream::of(scalars[seed], scalars[step], draw, layer, micro_batch);
    const double heat = scalars[temperature];
    const Index element = row_of_all(r) * classes + rows.first;
    const double found = block.maximum(rows.own, -1.0, [&](Index i) {
      const float logit = rows.at(r, i);
      if (threshold != nullptr && !passes(logit, threshold[r])) return -1.0;
      float perturbed = logit;
      if (heat > 0) {
        const std::uint32_t word = stream.word(static_cast<std::uint64_t>(element + i));
        perturbed =
            static_cast<float>(static_cast<double>(logit) / heat - std::log(-std::log((word + 0.5) / 4294967296.0)));
      }
      if (perturbed != perturbed) return std::numeric_limits<double>::infinity();
      return static_cast<double>(order_of(perturbed)) * static_cast<double>(operation::most_classes) +
             static_cast<double>(operation::most_classes - 1 - rows.first - i);
    });
    block.each(1, [&](Index) { best[r] = found; });
  }

 private:
  PARALLEL_DEVICE Index row_of_all(Index r) const {
    Index all = 0, beside = 1;
    for (int d = rank - 1; d >= 0; --d) {
      all += (offset[d] + r % size[d]) * beside;
      r /= size[d];
      beside *= whole[d];
    }
    return all;
  }
};
/// (logits, scalars[, threshold]). Floor: 4 bytes per logit in f32, by one block a row.
inline void draw(const Call& call) {
  const operation::Drawing how(call.ints);
  const View& x = call.operands[0];
  Draw body{LogitRows::of(call),
            call.operands[1].as<const double>(),
            call.operands.size() > 2 ? call.operands[2].as<const Threshold>() : nullptr,
            call.results[0].as<double>(),
            how.temperature,
            how.seed,
            how.step,
            how.draw,
            call.layer,
            call.micro_batch,
            x.rank - 1,
            {},
            {},
            {},
            x.whole[x.rank - 1]};
  for (int d = 0; d < body.rank; ++d) {
    body.size[d] = x.size[d];
    body.offset[d] = x.offset[d];
    body.whole[d] = x.whole[d];
  }
  launch(gpu(call).stream(), LogitRows::count(call), body);
}

struct Drawn {
  const double* draws;
  int* result;
  PARALLEL_DEVICE void operator()(Index i) const {
    const double x = draws[i];
    const bool found = x >= 0 && x - x == 0;
    result[i] =
        found ? static_cast<int>(operation::most_classes - 1 - static_cast<Index>(x) % operation::most_classes) : -1;
  }
};
/// The class that a draw carries; -1 where a logit was NaN.
inline void drawn(const Call& call) {
  launch_each(call, call.results[0].elements(), Drawn{call.operands[0].as<const double>(), call.results[0].as<int>()});
}

}  // namespace parallel::internals::cuda
