// Layer norm and RMS norm over rows, the last dimension: statistics, the normalized rows, and the gradients.
#pragma once
#include <parallel/device/cpu/array.hpp>

namespace parallel::cpu {

/// A part as rows of its last dimension.
struct Rows {
  Index count, length;
  explicit Rows(const View& x) : count(x.extent(0, x.rank - 1)), length(x.size[x.rank - 1]) {}
};

/// x: the row's sum times the first number.
template <class T>
void row_mean(const Call& call) {
  const Rows rows(call.operands[0]);
  const T* x = call.operands[0].as<const T>();
  for (Index r = 0; r < rows.count; ++r)
    call.results[0].as<T>()[r] = static_cast<T>(call.reals[0]) * sum_of(x + r * rows.length, rows.length);
}
/// (x, mean): the row's sum of (x - mean)^2 times the first number; without mean: of x^2.
template <class T>
[[gnu::flatten]] void row_variance(const Call& call) {
  const Rows rows(call.operands[0]);
  const bool centered = call.operands.size() > 1;
  for (Index r = 0; r < rows.count; ++r) {
    const T *x = call.operands[0].as<const T>() + r * rows.length, mean = centered ? call.operands[1].as<const T>()[r] : T{0};
    call.results[0].as<T>()[r] =
        static_cast<T>(call.reals[0]) * sum_by_lanes<T>(rows.length, [=](const T* a) { return (lanes(a) - mean).square(); }, x);
  }
}

/// 1 / sqrt(variance + epsilon)
template <class T>
T inverse_deviation(T variance, double epsilon) {
  return 1 / std::sqrt(variance + static_cast<T>(epsilon));
}

/// (x, mean, variance, gain, shift) or (x, variance, gain); the second number is epsilon.
template <class T>
[[gnu::flatten]] void normalize(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const Rows rows(call.operands[0]);
  const Index n = rows.length;
  const T *mean = centered ? call.operands[1].as<const T>() : nullptr, *variance = call.operands[centered ? 2 : 1].as<const T>();
  const T *gain = call.operands[centered ? 3 : 2].as<const T>(), *shift = centered ? call.operands[4].as<const T>() : nullptr;
  for (Index r = 0; r < rows.count; ++r) {
    const T *x = call.operands[0].as<const T>() + r * n, inverse = inverse_deviation(variance[r], call.reals[1]);
    T* out = call.results[0].as<T>() + r * n;
    if (centered)
      by_lanes(
          n, [=, m = mean[r]](T* to, const T* a, const T* b, const T* c) { lanes(to) = (lanes(a) - m) * inverse * lanes(b) + lanes(c); },
          out, x, gain, shift);
    else
      by_lanes(n, [=](T* to, const T* a, const T* b) { lanes(to) = lanes(a) * inverse * lanes(b); }, out, x, gain);
  }
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
  };
  Row row(Index r) const {
    return {g + r * rows.length, x + r * rows.length, mean != nullptr ? mean[r] : T{0}, inverse_deviation(variance[r], epsilon)};
  }
};

/// (g, x, variance, gain[, mean]): the sums of g gain (layer norm only) and of g gain xhat along a row, times the first number.
template <class T>
[[gnu::flatten]] void norm_products(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T share = static_cast<T>(call.reals[0]);
  const T* gain = call.operands[3].as<const T>();
  const Index n = norm.rows.length;
  for (Index r = 0; r < norm.rows.count; ++r) {
    const auto row = norm.row(r);
    if (centered) call.results[0].as<T>()[r] = share * inner_product(row.g, gain, n);
    call.results[centered ? 1 : 0].as<T>()[r] =
        share * row.inverse *
        sum_by_lanes<T>(
            n, [mean = row.mean](const T* a, const T* b, const T* c) { return lanes(a) * lanes(b) * (lanes(c) - mean); }, row.g, gain,
            row.x);
  }
}
/// (g, x, variance, gain, mean, a, b) or (g, x, variance, gain, b): (g gain - a - xhat b) / sqrt(variance + epsilon)
template <class T>
[[gnu::flatten]] void norm_gradient(const Call& call) {
  const bool centered = call.operands.size() == 7;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T *gain = call.operands[3].as<const T>(), *a = centered ? call.operands[5].as<const T>() : nullptr,
          *b = call.operands[centered ? 6 : 4].as<const T>();
  for (Index r = 0; r < norm.rows.count; ++r) {
    const auto row = norm.row(r);
    const T mean_of_g = centered ? a[r] : T{0}, slope = b[r] * row.inverse;
    by_lanes(
        norm.rows.length,
        [=](T* to, const T* g, const T* from_gain, const T* x) {
          lanes(to) = (lanes(g) * lanes(from_gain) - mean_of_g - (lanes(x) - row.mean) * slope) * row.inverse;
        },
        call.results[0].as<T>() + r * norm.rows.length, row.g, gain, row.x);
  }
}
/// (g, x, variance[, mean]): the gradients of the gain and, for layer norm, of the shift: sums over all rows, sixty-four at a time.
template <class T>
[[gnu::flatten]] void norm_parameter_gradient(const Call& call) {
  const bool centered = call.operands.size() == 4;
  const NormGradient<T> norm(call, centered ? 3 : -1);
  const Index n = norm.rows.length;
  T *gain = call.results[0].as<T>(), *shift = centered ? call.results[1].as<T>() : nullptr;
  set(gain, n, T{0});
  if (centered) set(shift, n, T{0});
  constexpr Index most = 64;
  in_chunks(
      norm.rows.count,
      [&](Index first, Index count) {
        typename NormGradient<T>::Row rows[most];
        for (Index r = 0; r < count; ++r) rows[r] = norm.row(first + r);
        Index j = 0;
        for (; j + 16 <= n; j += 16) {
          Lanes<T> of_gain = Lanes<T>::Zero(), of_shift = of_gain;
          for (Index r = 0; r < count; ++r) {
            of_gain += lanes(rows[r].g + j) * (lanes(rows[r].x + j) - rows[r].mean) * rows[r].inverse;
            of_shift += lanes(rows[r].g + j);
          }
          lanes(gain + j) += of_gain;
          if (centered) lanes(shift + j) += of_shift;
        }
        for (; j < n; ++j)
          for (Index r = 0; r < count; ++r) {
            gain[j] += rows[r].g[j] * (rows[r].x[j] - rows[r].mean) * rows[r].inverse;
            if (centered) shift[j] += rows[r].g[j];
          }
      },
      most);
}

}  // namespace parallel::cpu
