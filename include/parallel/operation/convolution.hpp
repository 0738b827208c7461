// Convolutions, and what they are backward: x[batch, channels, (height,) width] as PyTorch lays it out, so that its
// weights [channels out, channels in, (height,) width] and data are taken as they are.
#pragma once
#include <parallel/operation/windows.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x    weight   result
// S0   B        S0       data parallel; the gradient of the weight is Partial
// B    S0       S1       by channels out; the gradient of x is Partial
// S1   S1       P        by channels in
// S2   B        S2       only where windows lie apart, as patches do: else a rank lacks its neighbours' edge
// P    B        P
// B    P        P
// Of x, the weight and the result each operation here makes one of the two others, by the same indices.

/// The indices of x, weight and result of a convolution.
struct Convolved {
  IndexLabels x{}, weight{}, y{};
  int labels = 0;
  constexpr Convolved(const Layout& of_x, const Layout& of_weight, const Layout& of_y, const Windows& windows) {
    const auto index_of = [&](const Dim& d) { return d.size > 1 ? ++labels : 0; };
    x = {index_of(of_x.dims[0]), index_of(of_x.dims[1])};
    weight = {index_of(of_weight.dims[0]), x[1]};
    y = {x[0], weight[0]};
    for (int d = 0; d < windows.dims; ++d) {
      const std::int64_t extent = of_x.dims[2 + d].size, window = of_weight.dims[2 + d].size,
                         places = of_y.dims[2 + d].size;
      x.push_back(windows.apart(d, extent, window, places) ? ++labels : 0);
      weight.push_back(0);
      y.push_back(x[2 + d]);
    }
  }
};
constexpr Signatures bilinear_rows(const IndexLabels& left, const IndexLabels& right, const IndexLabels& result,
                                   int labels) {
  Signatures rows{uniform_row(2, 1, Broadcast)};
  add_split_rows(rows, {left, right}, {result}, labels);
  rows.push_back(linear_row(2, 0));
  rows.push_back(linear_row(2, 1));
  return rows;
}
/// Whether both operands have the dimensions of a convolution's, and one element type.
constexpr Refusal convolution_operands(const Arguments& a) {
  if (a.rank(0) < 3 || a.rank(0) > 4) return {Reason::wrong_rank, {a.rank(0), 4}};
  if (a.rank(1) != a.rank(0)) return {Reason::wrong_rank, {a.rank(1), a.rank(0)}};
  return one_element_type(a);
}
constexpr std::int64_t product_of(const Layout& layout, int first) {
  std::int64_t n = 1;
  for (int d = first; d < layout.rank(); ++d) n *= layout.dims[d].size;
  return n;
}

PARALLEL_AHEAD constexpr Shaped convolution_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  if (const Refusal refusal = convolution_operands(a)) return {{result}, refusal};
  if (a.size(0, 1) != a.size(1, 1)) return {{result}, {Reason::channels_differ, {a.size(0, 1), a.size(1, 1)}}};
  const Windows windows(a.rank(0), a.ints);
  result.layout.dims = {Dim(a.size(0, 0)), Dim(a.size(1, 0))};
  for (int d = 0; d < windows.dims; ++d) {
    if (const Refusal refusal = windows.fits(d, a.size(0, 2 + d), a.size(1, 2 + d))) return {{result}, refusal};
    result.layout.dims.push_back(Dim(windows.places(d, a.size(0, 2 + d), a.size(1, 2 + d))));
  }
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures convolution_table(const Arguments& a) {
  const Convolved c(a.types[0].layout, a.types[1].layout, convolution_shape(a).results[0].layout,
                    Windows(a.rank(0), a.ints));
  return bilinear_rows(c.x, c.weight, c.y, c.labels);
}
PARALLEL_AHEAD constexpr std::int64_t convolution_flops(const Arguments& a) {
  return 2 * convolution_shape(a).results[0].layout.elements() * product_of(a.types[1].layout, 1);
}
PARALLEL_AHEAD constexpr void convolution_gradient(Gradient&);
/// (x, weight)
inline constexpr Operation convolution{.name = "convolution",
                                       .shape = convolution_shape,
                                       .signatures = convolution_table,
                                       .gradient = convolution_gradient,
                                       .flops = convolution_flops,
                                       .rate = Rate::products};

PARALLEL_AHEAD constexpr Shaped transposed_convolution_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  if (const Refusal refusal = convolution_operands(a)) return {{result}, refusal};
  if (a.size(0, 1) != a.size(1, 0)) return {{result}, {Reason::channels_differ, {a.size(0, 1), a.size(1, 0)}}};
  const Windows windows(a.rank(0), a.ints);
  result.layout.dims = {Dim(a.size(0, 0)), Dim(a.size(1, 1))};
  for (int d = 0; d < windows.dims; ++d) {
    const std::int64_t window = a.size(1, 2 + d), stride = windows.stride(d), more = windows.third(d),
                       extent = (a.size(0, 2 + d) - 1) * stride - 2 * windows.padding(d) + window + more;
    if (more < 0 || more >= stride || extent < 1)
      return {{result}, {Reason::window, {a.size(0, 2 + d), window, stride, windows.padding(d)}}};
    if (const Refusal refusal = windows.fits(d, extent, window)) return {{result}, refusal};
    result.layout.dims.push_back(Dim(extent));
  }
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures transposed_convolution_table(const Arguments& a) {
  const Convolved c(transposed_convolution_shape(a).results[0].layout, a.types[1].layout, a.types[0].layout,
                    Windows(a.rank(0), a.ints));
  return bilinear_rows(c.y, c.weight, c.x, c.labels);
}
PARALLEL_AHEAD constexpr std::int64_t transposed_convolution_flops(const Arguments& a) {
  return 2 * a.types[0].layout.elements() * product_of(a.types[1].layout, 1);
}
PARALLEL_AHEAD constexpr void transposed_convolution_gradient(Gradient&);
/// (y, weight): the x whose convolution with the weight has the extents of y, and `third` more that no window reaches:
/// a convolution backward.
inline constexpr Operation transposed_convolution{.name = "transposed_convolution",
                                                  .shape = transposed_convolution_shape,
                                                  .signatures = transposed_convolution_table,
                                                  .gradient = transposed_convolution_gradient,
                                                  .flops = transposed_convolution_flops,
                                                  .rate = Rate::products};

PARALLEL_AHEAD constexpr Shaped convolution_weight_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  if (const Refusal refusal = convolution_operands(a)) return {{result}, refusal};
  if (a.size(0, 0) != a.size(1, 0)) return {{result}, {Reason::shapes_differ, {a.size(0, 0), a.size(1, 0)}}};
  const Windows windows(a.rank(0), a.ints);
  result.layout.dims = {Dim(a.size(1, 1)), Dim(a.size(0, 1))};
  for (int d = 0; d < windows.dims; ++d) {
    const std::int64_t extent = a.size(0, 2 + d), window = windows.third(d);
    if (const Refusal refusal = windows.fits(d, extent, window)) return {{result}, refusal};
    if (const std::int64_t places = windows.places(d, extent, window); places != a.size(1, 2 + d))
      return {{result}, {Reason::shapes_differ, {places, a.size(1, 2 + d)}}};
    result.layout.dims.push_back(Dim(window));
  }
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures convolution_weight_table(const Arguments& a) {
  const Convolved c(a.types[0].layout, convolution_weight_shape(a).results[0].layout, a.types[1].layout,
                    Windows(a.rank(0), a.ints));
  return bilinear_rows(c.x, c.y, c.weight, c.labels);
}
PARALLEL_AHEAD constexpr std::int64_t convolution_weight_flops(const Arguments& a) {
  return 2 * a.types[1].layout.elements() * product_of(convolution_weight_shape(a).results[0].layout, 1);
}
PARALLEL_AHEAD constexpr void convolution_weight_gradient(Gradient&);
/// (x, y): the weight's gradient where y is the result's; the third numbers are the weight's extents.
inline constexpr Operation convolution_weight{.name = "convolution_weight",
                                              .shape = convolution_weight_shape,
                                              .signatures = convolution_weight_table,
                                              .gradient = convolution_weight_gradient,
                                              .flops = convolution_weight_flops,
                                              .rate = Rate::products};

/// The attributes of another of the three: strides and paddings as they are, and what stands third.
constexpr Ints convolution_ints(const Ints& ints, int dims, const Ints& third = {}) {
  Ints result;
  for (int i = 0; i < 2 * dims; ++i) result.push_back(ints[i]);
  for (const std::int64_t n : third) result.push_back(n);
  return result;
}
/// What of x no window reaches.
constexpr Ints out_of_reach(const Layout& x, const Layout& weight, const Windows& windows) {
  Ints left;
  for (int d = 0; d < windows.dims; ++d)
    left.push_back((x.dims[2 + d].size + 2 * windows.padding(d) - weight.dims[2 + d].size) % windows.stride(d));
  return left;
}
constexpr Ints window_extents(const Layout& weight) {
  Ints extents;
  for (int d = 2; d < weight.rank(); ++d) extents.push_back(weight.dims[d].size);
  return extents;
}
PARALLEL_AHEAD constexpr void convolution_gradient(Gradient& g) {
  const Layout x = g.type(0).layout, weight = g.type(1).layout;
  const Windows windows(x.rank(), g.node.ints);
  g.give(0, transposed_convolution, {g.cotangent(), g.operand(1)},
         convolution_ints(g.node.ints, windows.dims, out_of_reach(x, weight, windows)));
  g.give(1, convolution_weight, {g.operand(0), g.cotangent()},
         convolution_ints(g.node.ints, windows.dims, window_extents(weight)));
}
PARALLEL_AHEAD constexpr void transposed_convolution_gradient(Gradient& g) {
  const Layout weight = g.type(1).layout;
  const int dims = weight.rank() - 2;
  g.give(0, convolution, {g.cotangent(), g.operand(1)}, convolution_ints(g.node.ints, dims));
  g.give(1, convolution_weight, {g.cotangent(), g.operand(0)},
         convolution_ints(g.node.ints, dims, window_extents(weight)));
}
PARALLEL_AHEAD constexpr void convolution_weight_gradient(Gradient& g) {
  const Layout x = g.type(0).layout, weight = g.result_type().layout;
  const Windows windows(x.rank(), g.node.ints);
  g.give(0, transposed_convolution, {g.operand(1), g.cotangent()},
         convolution_ints(g.node.ints, windows.dims, out_of_reach(x, weight, windows)));
  g.give(1, convolution, {g.operand(0), g.cotangent()}, convolution_ints(g.node.ints, windows.dims));
}
}  // namespace operation

/// x[batch, channels, height, width] with weight[channels out, channels, height, width], or both without a height, as
/// PyTorch's conv2d and conv1d: convolution<stride, padding>(x, weight). Zeros are padded on both sides.
/// `convolution<HeightWidth{2, 1}>(x, weight)`: other numbers for the height than for the width.
template <HeightWidth stride = 1, HeightWidth padding = 0, Distributed X, Distributed W>
constexpr auto convolution(const X& x, const W& weight, Here here = {}) {
  return internals::spelling::OverWindows<operation::convolution, X, stride, padding>::apply(here, x, weight);
}
/// What a convolution is backward, as PyTorch's conv_transpose2d and conv_transpose1d: x[batch, channels, height,
/// width] with weight[channels, channels out, height, width]. `more` rows and columns stand behind what it reaches.
template <HeightWidth stride = 1, HeightWidth padding = 0, HeightWidth more = 0, Distributed X, Distributed W>
constexpr auto transposed_convolution(const X& x, const W& weight, Here here = {}) {
  return internals::spelling::OverWindows<operation::transposed_convolution, X, stride, padding, more>::apply(here, x,
                                                                                                              weight);
}

}  // namespace parallel
