// Normalisation of channels over examples: a block adds up a channel, a thread has an element of what they make.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// Where the elements of a channel lie: `places` beside each other in each of `batch` examples.
struct Channels {
  Index batch, channels, places;
  explicit Channels(const View& x) : batch(x.size[0]), channels(x.size[1]), places(x.extent(2, x.rank)) {}
  PARALLEL_DEVICE Index elements() const { return batch * places; }
  PARALLEL_DEVICE Index at(Index channel, Index i) const {
    return (i / places * channels + channel) * places + i % places;
  }
  PARALLEL_DEVICE Index of(Index element) const { return element / places % channels; }
};
template <class S>
PARALLEL_DEVICE S inverse_deviation(S variance, double epsilon) {
  return S{1} / std::sqrt(variance + static_cast<S>(epsilon));
}

template <class T, class S>
struct ChannelSum {
  static constexpr int threads = 256;
  using W = Wide<S>;
  const T* x;
  const W* mean;  ///< of a mean none, of a variance the mean
  S* out;
  Channels c;
  W share;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const W from = mean != nullptr ? mean[block.index] : W{0};
    const W sum = block.template sum<W>(c.elements(), [&](Index i) {
      const W off = static_cast<W>(widen(x[c.at(block.index, i)])) - from;
      return mean != nullptr ? off * off : off;
    });
    block.each(1, [&](int) { out[block.index] = narrow<S>(sum * share); });
  }
};
template <class S>
void channel_sum(const Call& call, const Wide<S>* mean) {
  const View &x = call.operands[0], &out = call.results[0];
  with_element<S>(x.dtype, [&]<class T>(T) {
    launch(gpu(call).stream(), out.elements(),
           ChannelSum<T, S>{x.as<const T>(), mean, out.as<S>(), Channels(x), static_cast<Wide<S>>(call.reals[0])});
  });
}
/// x
template <class S>
void channel_mean(const Call& call) {
  channel_sum<S>(call, nullptr);
}
/// (x, mean)
template <class S>
void channel_variance(const Call& call) {
  channel_sum<S>(call, call.operands[1].as<const Wide<S>>());
}

template <class T>
struct ChannelNormalize {
  using S = Wide<T>;
  const T *x, *gain, *shift;
  const S *mean, *variance;
  T* out;
  Channels c;
  double epsilon;

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index channel = c.of(i);
    const S scale = widen(gain[channel]) * inverse_deviation(variance[channel], epsilon);
    out[i] = narrow<T>((widen(x[i]) - mean[channel]) * scale + widen(shift[channel]));
  }
};
/// (x, gain, shift, mean, variance)
template <class T>
void channel_normalize(const Call& call) {
  using S = Wide<T>;
  const View& x = call.operands[0];
  launch_each(gpu(call).stream(), x.elements(),
              ChannelNormalize<T>{x.as<const T>(), call.operands[1].as<const T>(), call.operands[2].as<const T>(),
                                  call.operands[3].as<const S>(), call.operands[4].as<const S>(),
                                  call.results[0].as<T>(), Channels(x), call.reals[1]});
}

template <class T, class S>
struct ChannelProducts {
  static constexpr int threads = 256;
  using W = Wide<S>;
  const T *g, *x;
  const W *mean, *variance;
  S *of_gain, *of_shift;
  Channels c;
  double epsilon;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const auto both = block.template sum<Several<W, 2>>(c.elements(), [&](Index i) {
      const Index at = c.at(block.index, i);
      const W given = static_cast<W>(widen(g[at]));
      return Several<W, 2>{{given * (static_cast<W>(widen(x[at])) - mean[block.index]), given}};
    });
    block.each(1, [&](int) {
      of_gain[block.index] = narrow<S>(both.of[0] * inverse_deviation(variance[block.index], epsilon));
      of_shift[block.index] = narrow<S>(both.of[1]);
    });
  }
};
/// (g, x, mean, variance)
template <class S>
void channel_products(const Call& call) {
  const View& x = call.operands[1];
  with_element<S>(x.dtype, [&]<class T>(T) {
    launch(gpu(call).stream(), call.results[0].elements(),
           ChannelProducts<T, S>{call.operands[0].as<const T>(), x.as<const T>(), call.operands[2].as<const Wide<S>>(),
                                 call.operands[3].as<const Wide<S>>(), call.results[0].as<S>(), call.results[1].as<S>(),
                                 Channels(x), call.reals[1]});
  });
}

template <class T>
struct ChannelGradient {
  using S = Wide<T>;
  const T *g, *x, *gain;
  const S *mean, *variance, *products, *sums;
  T* out;
  Channels c;
  S share;
  double epsilon;

  PARALLEL_DEVICE void operator()(Index i) const {
    const Index channel = c.of(i);
    const S inverse = inverse_deviation(variance[channel], epsilon), xhat = (widen(x[i]) - mean[channel]) * inverse;
    out[i] = narrow<T>((widen(g[i]) - share * (sums[channel] + xhat * products[channel])) *
                       (widen(gain[channel]) * inverse));
  }
};
/// (g, x, gain, mean, variance, sums of g xhat, sums of g)
template <class T>
void channel_gradient(const Call& call) {
  using S = Wide<T>;
  const View& x = call.operands[1];
  const auto statistic = [&](int o) { return call.operands[o].as<const S>(); };
  launch_each(gpu(call).stream(), x.elements(),
              ChannelGradient<T>{call.operands[0].as<const T>(), x.as<const T>(), call.operands[2].as<const T>(),
                                 statistic(3), statistic(4), statistic(5), statistic(6), call.results[0].as<T>(),
                                 Channels(x), static_cast<S>(call.reals[0]), call.reals[1]});
}

}  // namespace parallel::internals::cuda
