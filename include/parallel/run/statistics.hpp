// What the numbers of a rank's part of a tensor are like: how many, mean, deviation, least and most, how many are no
// finite numbers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <parallel/device/kernel.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

/// Of finite numbers, with those that are not finite counted beside them. Parts are put together in any number of
/// pieces (Chan, Golub and LeVeque, 1983), in double.
struct Statistics {
  std::int64_t finite = 0, nans = 0, infinities = 0;
  double mean = 0;
  double squares = 0;  ///< the sum of the squared differences from the mean
  double least = std::numeric_limits<double>::infinity(), most = -least;

  std::int64_t elements() const { return finite + nans + infinities; }
  std::int64_t not_finite() const { return nans + infinities; }
  /// Of all elements, not of a sample of them.
  double deviation() const { return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0; }
  /// With the numbers of another part.
  void add(const Statistics& other) {
    nans += other.nans;
    infinities += other.infinities;
    if (other.finite == 0) return;
    const auto own = static_cast<double>(finite), more = static_cast<double>(other.finite), all = own + more;
    const double apart = other.mean - mean;
    mean += apart * (more / all);
    squares += other.squares + apart * apart * (own * more / all);
    finite += other.finite;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

/// f(index in the full tensor, number) for each element of a rank's part that the host can read; padding is none. Of a
/// chunk's slice of stacked layers, and of what else is not the whole part, indices count within it.
template <class F>
void each_number(const Plan& plan, const Type& type, int rank, const View& part, F f) {
  if (part.data == nullptr) return;
  const auto by_type = [&]<class T>(const T* numbers) {
    const auto number = [&](std::int64_t i) {
      if constexpr (Half<T>)
        return static_cast<double>(static_cast<float>(numbers[i]));
      else
        return static_cast<double>(numbers[i]);
    };
    if (part.elements() != local_elements(type.layout, plan.mesh)) {
      for (std::int64_t i = 0; i < part.elements(); ++i) f(i, number(i));
    } else {
      each_run(plan, type.layout, rank, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) f(index + i, number(position + i));
      });
    }
  };
  switch (part.dtype) {
    case DType::f64: return by_type(static_cast<const double*>(part.data));
    case DType::bf16: return by_type(static_cast<const bfloat16*>(part.data));
    case DType::f16: return by_type(static_cast<const float16*>(part.data));
    case DType::i32: return by_type(static_cast<const int*>(part.data));
    default: return by_type(static_cast<const float*>(part.data));
  }
}

/// `each(f)` calls f(number) for each of them, twice: the mean is there before what differs from it is squared.
template <class Each>
Statistics statistics_of(Each each) {
  Statistics s;
  double sum = 0;
  each([&](double x) {
    if (std::isfinite(x)) {
      ++s.finite;
      sum += x;
      s.least = std::min(s.least, x);
      s.most = std::max(s.most, x);
    } else {
      ++(std::isnan(x) ? s.nans : s.infinities);
    }
  });
  if (s.finite == 0) return s;
  s.mean = sum / static_cast<double>(s.finite);
  each([&](double x) {
    if (std::isfinite(x)) s.squares += (x - s.mean) * (x - s.mean);
  });
  return s;
}

}  // namespace parallel::internals

namespace parallel {
using internals::Statistics;
}  // namespace parallel
