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
void row_variance(const Call& call) {
  const Rows rows(call.operands[0]);
  const T *x = call.operands[0].as<const T>(), *mean = call.operands.size() > 1 ? call.operands[1].as<const T>() : nullptr;
  for (Index r = 0; r < rows.count; ++r)
    call.results[0].as<T>()[r] =
        static_cast<T>(call.reals[0]) * (array(x + r * rows.length, rows.length) - (mean != nullptr ? mean[r] : T{0})).square().sum();
}

/// 1 / sqrt(variance + epsilon)
template <class T>
T inverse_deviation(T variance, double epsilon) {
  return 1 / std::sqrt(variance + static_cast<T>(epsilon));
}

/// (x, mean, variance, gain, shift) or (x, variance, gain); the second number is epsilon.
template <class T>
void normalize(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const Rows rows(call.operands[0]);
  const Index n = rows.length;
  const T *x = call.operands[0].as<const T>(), *variance = call.operands[centered ? 2 : 1].as<const T>();
  const auto gain = array(call.operands[centered ? 3 : 2].as<const T>(), n);
  for (Index r = 0; r < rows.count; ++r) {
    const auto row = array(x + r * n, n);
    auto out = array(call.results[0].as<T>() + r * n, n);
    const T inverse = inverse_deviation(variance[r], call.reals[1]);
    if (centered)
      out = (row - call.operands[1].as<const T>()[r]) * inverse * gain + array(call.operands[4].as<const T>(), n);
    else
      out = row * inverse * gain;
  }
}

/// What the gradients of a norm begin with: operands (g, x, variance, ..., mean); `mean` is nullptr for the RMS norm.
template <class T>
struct NormGradient {
  const Rows rows;
  const Index n;
  const T *g, *x, *variance, *mean;
  const double epsilon;
  NormGradient(const Call& call, int mean_at)
      : rows(call.operands[1]),
        n(rows.length),
        g(call.operands[0].as<const T>()),
        x(call.operands[1].as<const T>()),
        variance(call.operands[2].as<const T>()),
        mean(mean_at > 0 ? call.operands[mean_at].as<const T>() : nullptr),
        epsilon(call.reals[1]) {}
  auto cotangent(Index r, Index j, Index count) const { return array(g + r * n + j, count); }
  auto normalized(Index r, Index j, Index count) const {
    return (array(x + r * n + j, count) - (mean != nullptr ? mean[r] : T{0})) * inverse_deviation(variance[r], epsilon);
  }
};

/// (g, x, variance, gain[, mean]): the sums of g gain (layer norm only) and of g gain xhat along a row, times the first number.
template <class T>
void norm_products(const Call& call) {
  const bool centered = call.operands.size() == 5;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const T share = static_cast<T>(call.reals[0]);
  const auto gain = array(call.operands[3].as<const T>(), norm.n);
  T* products = call.results[centered ? 1 : 0].as<T>();
  for (Index r = 0; r < norm.rows.count; ++r) {
    if (centered) call.results[0].as<T>()[r] = share * inner_product(norm.g + r * norm.n, gain.data(), norm.n);
    products[r] = share * (norm.cotangent(r, 0, norm.n) * gain * norm.normalized(r, 0, norm.n)).sum();
  }
}
/// (g, x, variance, gain, mean, a, b) or (g, x, variance, gain, b): (g gain - a - xhat b) / sqrt(variance + epsilon)
template <class T>
void norm_gradient(const Call& call) {
  const bool centered = call.operands.size() == 7;
  const NormGradient<T> norm(call, centered ? 4 : -1);
  const auto gain = array(call.operands[3].as<const T>(), norm.n);
  const T *a = call.operands[5].as<const T>(), *b = call.operands[centered ? 6 : 4].as<const T>();
  for (Index r = 0; r < norm.rows.count; ++r)
    array(call.results[0].as<T>() + r * norm.n, norm.n) =
        (norm.cotangent(r, 0, norm.n) * gain - (centered ? a[r] : T{0}) - norm.normalized(r, 0, norm.n) * b[r]) *
        inverse_deviation(norm.variance[r], norm.epsilon);
}
/// (g, x, variance[, mean]): the gradients of the gain and, for layer norm, of the shift: sums over all rows, sixty-four at a time.
template <class T>
void norm_parameter_gradient(const Call& call) {
  const bool centered = call.operands.size() == 4;
  const NormGradient<T> norm(call, centered ? 3 : -1);
  T *gain = call.results[0].as<T>(), *shift = centered ? call.results[1].as<T>() : nullptr;
  array(gain, norm.n).setZero();
  if (centered) array(shift, norm.n).setZero();
  in_chunks(norm.n, [&](Index j, Index n) {
    in_chunks(
        norm.rows.count,
        [&](Index first, Index count) {
          Chunk<T> of_gain = Chunk<T>::Zero(n), of_shift = Chunk<T>::Zero(n);
          for (Index r = first; r < first + count; ++r) {
            of_gain += norm.cotangent(r, j, n) * norm.normalized(r, j, n);
            if (centered) of_shift += norm.cotangent(r, j, n);
          }
          array(gain + j, n) += of_gain;
          if (centered) array(shift + j, n) += of_shift;
        },
        64);
  });
}

}  // namespace parallel::cpu
