// Normalisation over examples: mean and variance of every channel, over all ranks' examples, and batch norm by them.
#pragma once
#include <parallel/operation/cast.hpp>
#include <parallel/operation/operators.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/reshape.hpp>

namespace parallel {

/// Of every channel, over all examples and places.
template <class Mean, class Variance>
struct BatchStatistics {
  Mean mean;
  Variance variance;
};

namespace internals {
namespace spelling {
/// The mean over all dimensions of x but 1; `behind` are those behind it, less 2.
template <class X, int... behind>
constexpr auto over_examples(const X& x, Here here, std::integer_sequence<int, behind...>) {
  return mean<0, (2 + behind)...>(x, here);
}
/// A number of each channel, as it meets a tensor with so many dimensions behind the channels.
template <class C, int... behind>
constexpr auto of_channels(const C& c, Here here, std::integer_sequence<int, behind...>) {
  return reshape<C::type.layout.dims[0].size, (behind * 0 + 1)...>(c, here);
}
template <class X>
using BehindChannels = std::make_integer_sequence<int, (X::type.layout.rank() > 2 ? X::type.layout.rank() - 2 : 0)>;
/// Of bf16 and f16, which statistics are not taken in, float.
template <class X>
constexpr auto precisely(const X& x, Here here) {
  if constexpr (is_half(X::type.dtype))
    return cast<float>(x, here);
  else
    return x;
}
}  // namespace spelling
}  // namespace internals

/// Mean and variance (of all elements, as normalisation takes it) of every channel of x[batch, channels, ...], one
/// number each, over the examples of all ranks. The words of an Evaluation that computes them for later use.
template <Distributed X>
constexpr auto batch_statistics(const X& x, Here here = {}) {
  using namespace internals;
  if constexpr (X::type.layout.rank() < 2) {
    const auto refused = mistaken<Reason::wrong_rank, X>();
    return BatchStatistics<decltype(refused), decltype(refused)>{refused, refused};
  } else {
    constexpr spelling::BehindChannels<X> behind{};
    const auto wide = spelling::precisely(x, here);
    const auto mean = spelling::over_examples(wide, here, behind);
    const auto centered = Apply<operation::subtract>{}(here, wide, spelling::of_channels(mean, here, behind));
    const auto variance = spelling::over_examples(square(centered, here), here, behind);
    return BatchStatistics<decltype(mean), decltype(variance)>{mean, variance};
  }
}

/// (x - mean) / sqrt(variance + epsilon) * gain + shift for every channel of x[batch, channels, ...], with given
/// statistics: those of training that weights came with, or of batch_statistics.
template <Distributed X, Distributed G, Distributed B, Distributed M, Distributed V>
constexpr auto batch_norm(const X& x, const G& gain, const B& shift, const M& mean, const V& variance,
                          double epsilon = 1e-5, Here here = {}) {
  using namespace internals;
  if constexpr (X::type.layout.rank() < 2) {
    return mistaken<Reason::wrong_rank, X>();
  } else {
    constexpr spelling::BehindChannels<X> behind{};
    using T = typename ElementOf<V::type.dtype>::type;
    const auto meets = [&](const auto& c) { return spelling::of_channels(c, here, behind); };
    const auto deviation = sqrt(Apply<operation::add>{}(here, variance, constant<T>(epsilon)), here);
    const auto scale = Apply<operation::divide>{}(here, spelling::precisely(gain, here), deviation);
    const auto centered = Apply<operation::subtract>{}(here, spelling::precisely(x, here), meets(mean));
    const auto y = Apply<operation::add>{}(here, Apply<operation::multiply>{}(here, centered, meets(scale)),
                                           meets(spelling::precisely(shift, here)));
    if constexpr (is_half(X::type.dtype))
      return cast<typename ElementOf<X::type.dtype>::type>(y, here);
    else
      return y;
  }
}
/// The same with the statistics of this batch, of all ranks together (Ioffe and Szegedy, 2015): PyTorch's in training,
/// on several GPUs SyncBatchNorm.
template <Distributed X, Distributed G, Distributed B>
constexpr auto batch_norm(const X& x, const G& gain, const B& shift, double epsilon = 1e-5, Here here = {}) {
  const auto of_batch = batch_statistics(x, here);
  return batch_norm(x, gain, shift, of_batch.mean, of_batch.variance, epsilon, here);
}

}  // namespace parallel
