// Layer norm and RMS norm over rows, the last dimension: statistics, the normalized rows, and the gradients.
#pragma once
#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// A part as rows of its last dimension.
struct Rows {
  Index count, length;
  explicit Rows(const View& x) : count(x.extent(0, x.rank - 1)), length(x.size[x.rank - 1]) {}
};
/// Calls f(row) for every row of a call's, by parts on the threads of its team.
template <class F>
void each_row(const Call& call, const Rows& rows, F f) {
  each_part(team_for_elements(call, rows.count * rows.length), rows.count, 1, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) f(r);
  });
}

// One row each, for an operation of its own and for those that do several things with a row while it is in the cache.

/// The sum of (x - mean)^2.
template <class T>
[[gnu::noinline, gnu::flatten]] T squares_of(const T* x, T mean, Index n) {
  return sum_by_lanes<T>(
      n, [=](const T* a) { return (lanes(a) - mean).square(); }, x);
}
/// 1 / sqrt(variance + epsilon)
template <class T>
T inverse_deviation(T variance, double epsilon) {
  return 1 / std::sqrt(variance + static_cast<T>(epsilon));
}
/// out = (x - mean) inverse gain + shift; without a shift x inverse gain.
template <class T>
[[gnu::noinline, gnu::flatten]] void normalize_row(T* out, const T* x, T mean, T inverse, const T* gain, const T* shift,
                                                   Index n) {
  if (shift != nullptr)
    by_lanes(
        n,
        [=](T* to, const T* a, const T* b, const T* c) {
          lanes(to) = (lanes(a) - mean) * inverse * lanes(b) + lanes(c);
        },
        out, x, gain, shift);
  else
    by_lanes(
        n, [=](T* to, const T* a, const T* b) { lanes(to) = lanes(a) * inverse * lanes(b); }, out, x, gain);
}

/// x: the row's sum times the first number.
template <class T>
void row_mean(const Call& call) {
  const Rows rows(call.operands[0]);
  const T* x = call.operands[0].as<const T>();
  each_row(call, rows, [&](Index r) {
    call.results[0].as<T>()[r] = static_cast<T>(call.reals[0]) * sum_of(x + r * rows.length, rows.length);
  });
}
/// (x, mean): the row's sum of (x - mean)^2 times the first number; without mean: of x^2.
template <class T>
void row_variance(const Call& call) {
  const Rows rows(call.operands[0]);
  const bool centered = call.operands.size() > 1;
  const T* x = call.operands[0].as<const T>();
  each_row(call, rows, [&](Index r) {
    call.results[0].as<T>()[r] =
        static_cast<T>(call.reals[0]) *
        squares_of(x + r * rows.length, centered ? call.operands[1].as<const T>()[r] : T{0}, rows.length);
  });
}
/// (x, mean, variance, gain, shift) or (x, variance, gain); the second number is epsilon.
template <class T>
void normalize(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const Rows rows(call.operands[0]);
  const Index n = rows.length;
  const T *mean = centered ? call.operands[1].as<const T>() : nullptr,
          *variance = call.operands[centered ? 2 : 1].as<const T>();
  const T *gain = call.operands[centered ? 3 : 2].as<const T>(),
          *shift = centered ? call.operands[4].as<const T>() : nullptr;
  each_row(call, rows, [&](Index r) {
    normalize_row(call.results[0].as<T>() + r * n, call.operands[0].as<const T>() + r * n, centered ? mean[r] : T{0},
                  inverse_deviation(variance[r], call.reals[1]), gain, shift, n);
  });
}
/// (x, gain, shift): the normalized rows, mean and variance; (x, gain): the normalized rows and the mean of squares.
template <class T>
void norm_rows(const Call& call) {
  const bool centered = call.operands.size() == 3;
  const Rows rows(call.operands[0]);
  const Index n = rows.length;
  const T *gain = call.operands[1].as<const T>(), *shift = centered ? call.operands[2].as<const T>() : nullptr,
          share = static_cast<T>(call.reals[0]);
  each_row(call, rows, [&](Index r) {
    const T *x = call.operands[0].as<const T>() + r * n, mean = centered ? share * sum_of(x, n) : T{0},
            variance = share * squares_of(x, mean, n);
    normalize_row(call.results[0].as<T>() + r * n, x, mean, inverse_deviation(variance, call.reals[1]), gain, shift, n);
    if (centered) call.results[1].as<T>()[r] = mean;
    call.results[centered ? 2 : 1].as<T>()[r] = variance;
  });
}

/// What the gradients of a norm begin with: operands (g, x, variance, ..., mean); there is no mean in the RMS norm.
template <class T>
struct NormGradient {
  const Rows rows;
  const T *g, *x, *variance, *mean;
  const double epsilon;
  NormGradient(const Call& call, int mean_at)
      : rows(call.operands[1]),
        g(call.operands[0].as<const T>()),
        x(call.operands[1].as<const T>()),
        variance(call.operands[2].as<const T>()),
        mean(mean_at > 0 ? call.operands[mean_at].as<const T>() : nullptr),
        epsilon(call.reals[1]) {}
  /// One row: xhat is (x - mean) * inverse.
  struct Row {
    const T *g = nullptr, *x = nullptr;
    T mean = 0, inverse = 0;
    /// share times the sum of g gain xhat
    [[gnu::noinline, gnu::flatten]] T product(const T* gain, T share, Index n) const {
      return share * inverse *
             sum_by_lanes<T>(
                 n, [m = mean](const T* a, const T* b, const T* c) { return lanes(a) * lanes(b) * (lanes(c) - m); }, g,
                 gain, x);
    }
    /// out = (g gain - a - xhat b) inverse
    [[gnu::noinline, gnu::flatten]] void gradient(T* out, const T* gain, T a, T b, Index n) const {
      by_lanes(
          n,
          [a, m = mean, by = inverse, slope = b * inverse](T* to, const T* some, const T* from_gain, const T* from) {
            lanes(to) = (lanes(some) * lanes(from_gain) - a - (lanes(from) - m) * slope) * by;
          },
          out, g, gain, x);
    }
  };
  Row row(Index r) const {
    return {g + r * rows.length, x + r * rows.length, mean != nullptr ? mean[r] : T{0},
            inverse_deviation(variance[r], epsilon)};
  }

  /// rows whose terms are added before they meet the sums, so that long sums lose little
  static constexpr Index most = 64;
  /// gain += g xhat, shift += g, where there is one, of rows [first, first + count) and columns [begin, end), which are
  /// whole lanes or the last.
  [[gnu::noinline, gnu::flatten]] void add_terms(T* gain, T* shift, Index first, Index count, Index begin,
                                                 Index end) const {
    Row some[most];
    for (Index r = 0; r < count; ++r) some[r] = row(first + r);
    Index j = begin;
    for (; j + 16 <= end; j += 16) {
      Lanes<T> of_gain = Lanes<T>::Zero(), of_shift = of_gain;
      for (Index r = 0; r < count; ++r) {
        of_gain += lanes(some[r].g + j) * (lanes(some[r].x + j) - some[r].mean) * some[r].inverse;
        of_shift += lanes(some[r].g + j);
      }
      lanes(gain + j) += of_gain;
      if (shift != nullptr) lanes(shift + j) += of_shift;
    }
    for (; j < end; ++j)
      for (Index r = 0; r < count; ++r) {
        gain[j] += some[r].g[j] * (some[r].x[j] - some[r].mean) * some[r].inverse;
        if (shift != nullptr) shift[j] += some[r].g[j];
      }
  }
  /// The same of all rows, from zero on.
  void sum_terms(Team* team, T* gain, T* shift) const {
    each_part(team, rows.length, 64, [&](Index begin, Index end) {
      set(gain + begin, end - begin, T{0});
      if (shift != nullptr) set(shift + begin, end - begin, T{0});
      in_chunks(
          rows.count, [&](Index first, Index count) { add_terms(gain, shift, first, count, begin, end); }, most);
    });
  }
};

/// (g, x, variance, gain[, mean]): the sums of g gain (layer norm only) and of g gain xhat along a row, times the first
/// number.
template <class T>
void norm_products(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T share = static_cast<T>(call.reals[0]);
  const T* gain = call.operands[3].as<const T>();
  const Index n = norm.rows.length;
  each_row(call, norm.rows, [&](Index r) {
    const auto row = norm.row(r);
    if (centered) call.results[0].as<T>()[r] = share * inner_product(row.g, gain, n);
    call.results[centered ? 1 : 0].as<T>()[r] = row.product(gain, share, n);
  });
}
/// (g, x, variance, gain, mean, a, b) or (g, x, variance, gain, b): (g gain - a - xhat b) / sqrt(variance + epsilon)
template <class T>
void norm_gradient(const Call& call) {
  const bool centered = call.operands.size() == 7;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T *gain = call.operands[3].as<const T>(), *a = centered ? call.operands[5].as<const T>() : nullptr,
          *b = call.operands[centered ? 6 : 4].as<const T>();
  each_row(call, norm.rows, [&](Index r) {
    norm.row(r).gradient(call.results[0].as<T>() + r * norm.rows.length, gain, centered ? a[r] : T{0}, b[r],
                         norm.rows.length);
  });
}
/// (g, x, variance[, mean]): the gradients of the gain and, for layer norm, of the shift: sums over all rows.
template <class T>
void norm_parameter_gradient(const Call& call) {
  const bool centered = call.operands.size() == 4;
  const NormGradient<T> norm(call, centered ? 3 : -1);
  norm.sum_terms(team_for_elements(call, norm.rows.count * norm.rows.length), call.results[0].as<T>(),
                 centered ? call.results[1].as<T>() : nullptr);
}
/// (g, x, variance, gain[, mean]): the gradients of x and, where there are results for them, of gain and shift.
template <class T>
void norm_rows_gradient(const Call& call) {
  const bool centered = call.operands.size() == 5, sums = call.results.size() > 1;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T *from_gain = call.operands[3].as<const T>(), share = static_cast<T>(call.reals[0]);
  const Index n = norm.rows.length;
  T *gain = sums ? call.results[1].as<T>() : nullptr, *shift = sums && centered ? call.results[2].as<T>() : nullptr;
  const auto of_row = [&](Index r) {
    const auto row = norm.row(r);
    const T a = centered ? share * inner_product(row.g, from_gain, n) : T{0}, b = row.product(from_gain, share, n);
    row.gradient(call.results[0].as<T>() + r * n, from_gain, a, b, n);
  };
  Team* const team = team_for_elements(call, norm.rows.count * n);
  if (team != nullptr || !sums) {
    each_row(call, norm.rows, of_row);
    if (sums) norm.sum_terms(team, gain, shift);
    return;
  }
  set(gain, n, T{0});
  if (shift != nullptr) set(shift, n, T{0});
  in_chunks(
      norm.rows.count,
      [&](Index first, Index count) {
        for (Index r = first; r < first + count; ++r) of_row(r);
        norm.add_terms(gain, shift, first, count, 0, n);
      },
      norm.most);
}

}  // namespace parallel::internals::cpu
