// Normalisation over examples: mean and variance of every channel, over all ranks' examples, and batch norm by them.
#pragma once
#include <parallel/operation/cast.hpp>
#include <parallel/operation/operators.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x             gain, shift   result
// S1            S0            S1       channels
// S, others     B             S        exchanges mean and variance; backward two sums; gain and shift have Partial ones
// B             P             P        linear in gain and shift together
PARALLEL_AHEAD constexpr Shaped batch_norm_shape(const Arguments& a) {
  const Shaped same = same_shape(a);
  if (a.rank(0) < 2) return {same.results, {Reason::wrong_rank, {a.rank(0), 2}}};
  for (int i = 1; i < a.types.size(); ++i) {
    if (a.rank(i) != 1) return {same.results, {Reason::wrong_rank, {a.rank(i), 1}}};
    if (a.size(i, 0) != a.size(0, 1)) return {same.results, {Reason::shapes_differ, {a.size(0, 1), a.size(i, 0)}}};
  }
  return {same.results, one_element_type(a)};
}
PARALLEL_AHEAD constexpr Signatures batch_norm_table(const Arguments& a) {
  Signatures rows{uniform_row(3, 1, Broadcast)};
  for (int d = 0; d < a.rank(0); ++d) {
    if (a.size(0, d) < 2) continue;
    Signature row = uniform_row(3, 1, d == 1 ? split(0) : Broadcast);
    row.operands[0] = row.results[0] = split(d);
    row.communicates = d != 1;
    rows.push_back(row);
  }
  Signature linear = uniform_row(3, 1, Partial);
  linear.operands[0] = Broadcast;
  linear.joins = 4;  // the shift is added, the gain multiplies
  rows.push_back(linear);
  return rows;
}
/// The dimensions over which there are statistics.
constexpr Ints but_channels(const Layout& x) {
  Ints dims{0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}
PARALLEL_AHEAD constexpr void batch_norm_lower(Lowering&);
PARALLEL_AHEAD constexpr void batch_norm_gradient(Gradient&);
/// (x, gain, shift); the first number is epsilon.
inline constexpr Operation batch_norm{.name = "batch_norm",
                                      .shape = batch_norm_shape,
                                      .signatures = batch_norm_table,
                                      .element_by_element = 6,
                                      .lower = batch_norm_lower};
// The first number is one over how many elements a channel has, the second epsilon.
/// x: the sums of channels times the first number
inline constexpr Operation channel_mean{.name = "channel_mean", .flops = elements_of_operand};
/// (x, mean): the sums of (x - mean)^2 times the first number
inline constexpr Operation channel_variance{.name = "channel_variance", .flops = elements_of_operand};
/// (x, gain, shift, mean, variance)
inline constexpr Operation channel_normalize{.name = "channel_normalize", .gradient = batch_norm_gradient};
/// (g, x, mean, variance): the sums of g xhat, and of g, which are the gradients of gain and shift
inline constexpr Operation channel_products{.name = "channel_products", .flops = elements_of_operand};
/// (g, x, gain, mean, variance, and the two sums)
inline constexpr Operation channel_derivative{.name = "channel_gradient"};

PARALLEL_AHEAD constexpr void batch_norm_lower(Lowering& l) {
  const int x = l.operands[0];
  const Type type = l.type(0), own = pending_on(statistic(type, but_channels(type.layout)), l.exchanging);
  const double share = static_cast<double>(type.layout.dims[1].size) / static_cast<double>(type.layout.elements());
  const int mean = l.exchange(l.emit(channel_mean, {x}, {own}, {}, share), l.exchanging);
  const int variance = l.exchange(l.emit(channel_variance, {x, mean}, {own}, {}, share), l.exchanging);
  l.result =
      l.emit(channel_normalize, {x, l.operands[1], l.operands[2], mean, variance}, l.results, {}, share, l.reals[0]);
}
PARALLEL_AHEAD constexpr void batch_norm_gradient(Gradient& g) {
  const int x = g.operand(0), mean = g.operand(3), variance = g.operand(4), dy = g.cotangent();
  const double share = g.node.reals[0], epsilon = g.node.reals[1];
  const AxisList exchanging = split_along(g.type(0).layout, but_channels(g.type(0).layout));
  // where ranks have other examples gain and shift are Broadcast, so these are pending, as the gradient of each is
  const auto own = [&](int i) { return Type{precise(g.type(i).dtype), conjugate(g.type(i)).layout}; };
  const int sums = g.emit(channel_products, {dy, x, mean, variance}, {own(1), own(2)}, {}, share, epsilon);
  if (g.wants(0)) {
    const int of_gain = g.exchange(sums, exchanging), of_shift = g.exchange(sums + 1, exchanging);
    g.give(0, channel_derivative, {dy, x, g.operand(1), mean, variance, of_gain, of_shift}, {}, share, epsilon);
  }
  for (int i = 1; i <= 2; ++i)
    if (g.wants(i)) g.give(i, sums + i - 1);
}
}  // namespace operation

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
  return Apply<operation::batch_norm>{epsilon}(here, x, gain, shift);
}

}  // namespace parallel
