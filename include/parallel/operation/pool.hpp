// The largest or the mean of the elements of windows: max_pool and average_pool.
#pragma once
#include <parallel/operation/windows.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// x          max_pool   average_pool
// S0, S1     S          S
// S2, S3     S          S             only where windows lie apart: else a rank lacks its neighbours' edge
// P          completed  P
PARALLEL_AHEAD constexpr Shaped pool_shape(const Arguments& a) {
  Type result{a.types[0].dtype, {}};
  if (a.rank(0) < 3 || a.rank(0) > 4) return {{result}, {Reason::wrong_rank, {a.rank(0), 4}}};
  const Windows windows(a.rank(0), a.ints);
  result.layout.dims = {Dim(a.size(0, 0)), Dim(a.size(0, 1))};
  for (int d = 0; d < windows.dims; ++d) {
    const std::int64_t extent = a.size(0, 2 + d), window = windows.third(d);
    if (const Refusal refusal = windows.fits(d, extent, window)) return {{result}, refusal};
    if (2 * windows.padding(d) > window)  // a window could lie outside altogether
      return {{result}, {Reason::window, {extent, window, windows.stride(d), windows.padding(d)}}};
    result.layout.dims.push_back(Dim(windows.places(d, extent, window)));
  }
  return {{result}, {}};
}
constexpr Signatures pool_rows(const Arguments& a, bool linear) {
  const Windows windows(a.rank(0), a.ints);
  const Layout result = pool_shape(a).results[0].layout;
  Signatures rows{uniform_row(1, 1, Broadcast)};
  if (linear) rows.push_back(uniform_row(1, 1, Partial));
  for (int d = 0; d < a.rank(0); ++d) {
    const bool apart =
        d < 2 ? a.size(0, d) > 1 : windows.apart(d - 2, a.size(0, d), windows.third(d - 2), result.dims[d].size);
    if (apart) rows.push_back(uniform_row(1, 1, split(d)));
  }
  return rows;
}
PARALLEL_AHEAD constexpr Signatures max_pool_table(const Arguments& a) { return pool_rows(a, false); }
PARALLEL_AHEAD constexpr Signatures average_pool_table(const Arguments& a) { return pool_rows(a, true); }
PARALLEL_AHEAD constexpr std::int64_t pool_flops(const Arguments& a) {
  const Windows windows(a.rank(0), a.ints);
  std::int64_t n = pool_shape(a).results[0].layout.elements();
  for (int d = 0; d < windows.dims; ++d) n *= windows.third(d);
  return n;
}

/// (x, g): g where x was the largest of a window, the first of equals in the order of memory, as PyTorch's.
inline constexpr Operation max_pool_derivative{.name = "max_pool_gradient", .flops = elements_of_operand};
PARALLEL_AHEAD constexpr void max_pool_gradient(Gradient& g) {
  g.give(0, max_pool_derivative, {g.operand(0), g.cotangent()}, g.node.ints);
}
/// The third numbers are the window's extents, here and of average_pool.
inline constexpr Operation max_pool{.name = "max_pool",
                                    .shape = pool_shape,
                                    .signatures = max_pool_table,
                                    .gradient = max_pool_gradient,
                                    .flops = pool_flops};
/// g: an equal share to every element of a window
inline constexpr Operation average_pool_derivative{.name = "average_pool_gradient", .flops = elements_of_operand};
PARALLEL_AHEAD constexpr void average_pool_gradient(Gradient& g) {
  g.give(0, average_pool_derivative, {g.cotangent()}, g.node.ints);
}
inline constexpr Operation average_pool{.name = "average_pool",
                                        .shape = pool_shape,
                                        .signatures = average_pool_table,
                                        .gradient = average_pool_gradient,
                                        .flops = pool_flops};
}  // namespace operation

/// The largest element of each window of x[batch, channels, height, width] or x[batch, channels, width]:
/// max_pool<window, stride, padding>(x), the stride as the window unless said; what is padded is less than all. Of
/// equal elements the first has the gradient, as PyTorch's max_pool2d and max_pool1d.
template <HeightWidth window, HeightWidth stride = window, HeightWidth padding = 0, Distributed X>
constexpr auto max_pool(const X& x, Here here = {}) {
  return internals::spelling::OverWindows<operation::max_pool, X, stride, padding, window>::apply(here, x);
}
/// The mean of each window, padded zeros among them, as PyTorch's avg_pool2d and avg_pool1d.
template <HeightWidth window, HeightWidth stride = window, HeightWidth padding = 0, Distributed X>
constexpr auto average_pool(const X& x, Here here = {}) {
  return internals::spelling::OverWindows<operation::average_pool, X, stride, padding, window>::apply(here, x);
}

}  // namespace parallel
