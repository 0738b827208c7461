// Normalisation of channels over examples: statistics, what they make, and back.
#pragma once
#include <parallel/device/cpu/norm.hpp>

namespace parallel::internals::cpu {

/// Calls body(channel, begin, count) for the places of every channel of every example.
template <class Body>
void each_channel(const View& x, Body body) {
  const Index channels = x.size[1], count = x.extent(2, x.rank);
  for (Index row = 0; row < x.size[0] * channels; ++row) body(row % channels, row * count, count);
}
/// x
template <class T>
void channel_mean(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const T* const from = x.as<const T>();
  T* const sum = out.as<T>();
  const T share = static_cast<T>(call.reals[0]);
  set(sum, out.elements(), T{0});
  each_channel(x, [&](Index c, Index begin, Index n) { sum[c] += share * sum_of(from + begin, n); });
}
/// (x, mean)
template <class T>
void channel_variance(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const T *const from = x.as<const T>(), *const mean = call.operands[1].as<const T>();
  T* const sum = out.as<T>();
  const T share = static_cast<T>(call.reals[0]);
  set(sum, out.elements(), T{0});
  each_channel(x, [&](Index c, Index begin, Index n) { sum[c] += share * squares_of(from + begin, mean[c], n); });
}
/// (x, gain, shift, mean, variance)
template <class T>
void channel_normalize(const Call& call) {
  const View& x = call.operands[0];
  const auto numbers = [&](int o) { return call.operands[o].as<const T>(); };
  const T *const from = x.as<const T>(), *const gain = numbers(1), *const shift = numbers(2), *const mean = numbers(3),
                 *const variance = numbers(4);
  T* const to = call.results[0].as<T>();
  each_channel(x, [&](Index c, Index begin, Index n) {
    const T scale = gain[c] * inverse_deviation(variance[c], call.reals[1]);
    array(to + begin, n) = (array(from + begin, n) - mean[c]) * scale + shift[c];
  });
}
/// (g, x, mean, variance)
template <class T>
void channel_products(const Call& call) {
  const View& x = call.operands[1];
  const T *const g = call.operands[0].as<const T>(), *const from = x.as<const T>(),
                 *const mean = call.operands[2].as<const T>(), *const variance = call.operands[3].as<const T>();
  T *const of_gain = call.results[0].as<T>(), *const of_shift = call.results[1].as<T>();
  for (const View& sums : call.results) set(sums.as<T>(), sums.elements(), T{0});
  each_channel(x, [&](Index c, Index begin, Index n) {
    of_gain[c] += (array(g + begin, n) * (array(from + begin, n) - mean[c])).sum() *
                  inverse_deviation(variance[c], call.reals[1]);
    of_shift[c] += sum_of(g + begin, n);
  });
}
/// (g, x, gain, mean, variance, sums of g xhat, sums of g)
template <class T>
void channel_gradient(const Call& call) {
  const View& x = call.operands[1];
  const auto numbers = [&](int o) { return call.operands[o].as<const T>(); };
  const T *const g = numbers(0), *const from = numbers(1), *const gain = numbers(2), *const mean = numbers(3),
                 *const variance = numbers(4), *const products = numbers(5), *const sums = numbers(6);
  T* const to = call.results[0].as<T>();
  const T share = static_cast<T>(call.reals[0]);
  each_channel(x, [&](Index c, Index begin, Index n) {
    const T inverse = inverse_deviation(variance[c], call.reals[1]), slope = inverse * share * products[c];
    array(to + begin, n) =
        (array(g + begin, n) - share * sums[c] - (array(from + begin, n) - mean[c]) * slope) * (gain[c] * inverse);
  });
}

}  // namespace parallel::internals::cpu
