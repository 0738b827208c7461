// Layer norm and RMS norm over rows, the last dimension, in parts: statistics, the normalized rows, and the gradients.
// Floors are bytes of memory per element of x, which all of them read once; rows are of 2 bytes an element in bf16.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/columns.hpp>
#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// statistic[row] = factor * sum of (x - mean)^2, or of x.
template <class T, class S, bool squares>
struct RowMoment {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Reals<W> mean;
  S* result;
  Rows rows;
  W factor;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index;
    const W center = squares && mean.data != nullptr ? mean[r] : W{0};
    const W sum = sum_along<W, n>(
        block, rows, rows.length, [=](W a) { return squares ? (a - center) * (a - center) : a; },
        Row<T>{x + rows.begin(r)});
    block.each(1, [&](Index) { result[r] = narrow<S>(factor * sum); });
  }
};
template <class S, bool squares>
void row_moment(const Call& call) {
  const View& x = call.operands[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using Body = RowMoment<T, S, squares>;
    const Rows rows = Rows::of<Body::n>(x, x.rank - 1);
    const auto mean = call.operands.size() > 1 ? Reals<Wide<T>>::of(call.operands[1]) : Reals<Wide<T>>{};
    launch_rows(call, Body{x.as<const T>(), mean, call.results[0].as<S>(), rows, static_cast<Wide<T>>(call.reals[0])});
  });
}
/// x: the row's sum times the first number. Floor: 2 bytes.
template <class S>
void row_mean(const Call& call) {
  row_moment<S, false>(call);
}
/// (x, mean): the row's sum of (x - mean)^2 times the first number; without mean: of x^2. Floor: 2 bytes.
template <class S>
void row_variance(const Call& call) {
  row_moment<S, true>(call);
}

/// What is known of a row of x: the mean, 0 where there is none, and 1 / sqrt(variance + epsilon).
template <class W>
struct Moments {
  Reals<W> mean, variance;
  W epsilon;
  PARALLEL_DEVICE W center(Index r) const { return mean.data != nullptr ? mean[r] : W{0}; }
  PARALLEL_DEVICE W inverse(Index r) const { return W{1} / std::sqrt(variance[r] + epsilon); }
  static Moments of(const Call& call, int variance, int mean) {
    return {mean > 0 ? Reals<W>::of(call.operands[mean]) : Reals<W>{}, Reals<W>::of(call.operands[variance]),
            static_cast<W>(call.reals[1])};
  }
};

/// out = (x - center) inverse gain + shift along a row; without a shift nothing is added.
template <int n, class Group, class T, class W>
PARALLEL_DEVICE void normalize_row(const Group& group, const Rows& rows, T* out, const Row<T>& row, W center, W inverse,
                                   const Reals<W>& gain, const Reals<W>& shift) {
  if (shift.data != nullptr)
    map_along<n>(
        group, rows, out, [=](Index, W a, W b, W c) { return (a - center) * inverse * b + c; }, row, gain, shift);
  else
    map_along<n>(
        group, rows, out, [=](Index, W a, W b) { return (a - center) * inverse * b; }, row, gain);
}

template <class T>
struct Normalize {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  Moments<W> moments;
  Reals<W> gain, shift;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W center = moments.center(r), inverse = moments.inverse(r);
    normalize_row<n>(block, rows, out + begin, Row<T>{x + begin}, center, inverse, gain, shift);
  }
};
/// (x, mean, variance, gain, shift) or (x, variance, gain); the second number is epsilon. Floor: 2 + 2 bytes.
template <class T>
void normalize(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const View &x = call.operands[0], &gain = call.operands[centered ? 3 : 2],
             &shift = centered ? call.operands[4] : gain;
  using W = Wide<T>;
  using Body = Normalize<T>;
  const Rows rows = Rows::of<Body::n>(x, x.rank - 1, gain, shift, call.results[0]);
  launch_rows(call, Body{x.as<const T>(), Moments<W>::of(call, centered ? 2 : 1, centered ? 1 : -1), Reals<W>::of(gain),
                         centered ? Reals<W>::of(shift) : Reals<W>{}, call.results[0].as<T>(), rows});
}

template <class S, class T>
struct NormProducts {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T *g, *x;
  Moments<W> moments;
  Reals<W> gain;
  S *plain, *by_x;  // plain: or none
  Rows rows;
  W share;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W center = moments.center(r), inverse = moments.inverse(r);
    const auto sums = sum_along<Several<W, 2>, n>(
        block, rows, rows.length,
        [=](W a, W b, W c) {
          return Several<W, 2>{{a * b, a * b * (c - center)}};
        },
        Row<T>{g + begin}, gain, Row<T>{x + begin});
    block.each(1, [&](Index) {
      if (plain != nullptr) plain[r] = narrow<S>(share * sums.of[0]);
      by_x[r] = narrow<S>(share * inverse * sums.of[1]);
    });
  }
};
/// (g, x, variance, gain[, mean]): the sums of g gain (layer norm only) and of g gain xhat along a row, times the first
/// number. Floor: 2 + 2 bytes.
template <class S>
void norm_products(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const View &g = call.operands[0], &x = call.operands[1], &gain = call.operands[3];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using W = Wide<T>;
    using Body = NormProducts<S, T>;
    const Rows rows = Rows::of<Body::n>(x, x.rank - 1, g, gain);
    launch_rows(call, Body{g.as<const T>(), x.as<const T>(), Moments<W>::of(call, 2, centered ? 4 : -1),
                           Reals<W>::of(gain), centered ? call.results[0].as<S>() : nullptr,
                           call.results[centered ? 1 : 0].as<S>(), rows, static_cast<W>(call.reals[0])});
  });
}

template <class T>
struct NormGradient {
  static constexpr int threads = 256, n = pack_elements<T>;
  using W = Wide<T>;
  const T *g, *x;
  Moments<W> moments;
  Reals<W> gain, plain, by_x;
  T* out;
  Rows rows;
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index r = block.index, begin = rows.begin(r);
    const W center = moments.center(r), inverse = moments.inverse(r), a = plain.data != nullptr ? plain[r] : W{0},
            slope = by_x[r] * inverse;
    map_along<n>(
        block, rows, out + begin,
        [=](Index, W y, W by, W from) { return (y * by - a - (from - center) * slope) * inverse; }, Row<T>{g + begin},
        gain, Row<T>{x + begin});
  }
};
/// (g, x, variance, gain, mean, a, b) or (g, x, variance, gain, b): (g gain - a - xhat b) / sqrt(variance + epsilon).
/// Floor: 2 + 2 + 2 bytes.
template <class T>
void norm_gradient(const Call& call) {
  const bool centered = call.operands.size() == 7;
  const View &g = call.operands[0], &x = call.operands[1], &gain = call.operands[3];
  using W = Wide<T>;
  using Body = NormGradient<T>;
  const Rows rows = Rows::of<Body::n>(x, x.rank - 1, g, gain, call.results[0]);
  launch_rows(call, Body{g.as<const T>(), x.as<const T>(), Moments<W>::of(call, 2, centered ? 4 : -1),
                         Reals<W>::of(gain), centered ? Reals<W>::of(call.operands[5]) : Reals<W>{},
                         Reals<W>::of(call.operands[centered ? 6 : 4]), call.results[0].as<T>(), rows});
}

/// What norm_parameter_gradient adds up: g xhat and g.
template <class T>
struct ParameterTerms {
  static constexpr int n = pack_elements<T>, sums = 2;
  using W = Wide<T>;
  const T *g, *x;
  Moments<W> moments;
  Index columns;
  template <bool packed>
  PARALLEL_DEVICE void add(Index r, Index first, Several<W, n> (&sum)[sums]) const {
    const W center = moments.center(r), inverse = moments.inverse(r);
    const auto a = Row<T>{g + r * columns}.template pack<n, packed>(first, columns),
               b = Row<T>{x + r * columns}.template pack<n, packed>(first, columns);
    for (int e = 0; e < n; ++e) {
      sum[0].of[e] += a.of[e] * (b.of[e] - center) * inverse;
      sum[1].of[e] += a.of[e];
    }
  }
};
/// (g, x, variance[, mean]): the gradients of the gain and, for layer norm, of the shift: sums over all rows. Floor: 2
/// + 2 bytes.
template <class S>
void norm_parameter_gradient(const Call& call) {
  const bool centered = call.operands.size() == 4;
  const View &g = call.operands[0], &x = call.operands[1];
  with_element<S>(x.dtype, [&]<class T>(T) {
    using W = Wide<T>;
    const Rows rows = Rows::of<pack_elements<T>>(x, x.rank - 1, g);
    S* const to[]{call.results[0].as<S>(), centered ? call.results[1].as<S>() : nullptr};
    sum_columns(
        gpu(call),
        ParameterTerms<T>{g.as<const T>(), x.as<const T>(), Moments<W>::of(call, 2, centered ? 3 : -1), rows.length},
        rows.count, rows.length, rows.packed, to);
  });
}

}  // namespace parallel::internals::cuda
