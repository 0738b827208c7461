// A warp's products of tiles in shared memory: by the tensor cores in bf16 and f16, in other types by multiply-adds.
// Sums and weights are in registers.
#pragma once
#include <parallel/device/cuda/body/tensor_core.hpp>
#include <parallel/device/cuda/body/tile.hpp>

namespace parallel::internals::cuda {

namespace by_tensor_cores {

template <Half T, int size, int m, int n>
PARALLEL_DEVICE void add_inner_products(Elements<float, m, n>& sum, const Tile<T, size>& left,
                                        const Tile<T, size>& right) {
  PARALLEL_UNROLL
  for (int k = 0; k < size; k += 16) {
    Factor<T> rows[m];
    PARALLEL_UNROLL
    for (int i = 0; i < m; ++i)
      load<false>(rows[i], [&](int p, int r) { return left.row(16 * i + p % 2 * 8 + r) + k + p / 2 * 8; });
    PARALLEL_UNROLL
    for (int j = 0; j < n; j += 2) {
      Factor<T> columns;
      load<false>(columns, [&](int p, int r) { return right.row(8 * j + p / 2 * 8 + r) + k + p % 2 * 8; });
      PARALLEL_UNROLL
      for (int i = 0; i < m; ++i)
        multiply_add(sum, i, j, rows[i], columns, 0), multiply_add(sum, i, j + 1, rows[i], columns, 1);
    }
  }
}
template <Half T, int size, int m, int n>
PARALLEL_DEVICE void add_weighted_rows(Elements<float, m, size / 8>& sum, const Elements<float, m, n>& weights,
                                       const Tile<T, size>& right) {
  PARALLEL_UNROLL
  for (int k = 0; k < n / 2; ++k) {
    Factor<T> rows[m];
    PARALLEL_UNROLL
    for (int i = 0; i < m; ++i) rows[i] = left_factor<T>(weights, i, k);
    PARALLEL_UNROLL
    for (int j = 0; j < size / 8; j += 2) {
      Factor<T> columns;
      load<true>(columns, [&](int p, int r) { return right.row(16 * k + p % 2 * 8 + r) + 8 * j + p / 2 * 8; });
      PARALLEL_UNROLL
      for (int i = 0; i < m; ++i)
        multiply_add(sum, i, j, rows[i], columns, 0), multiply_add(sum, i, j + 1, rows[i], columns, 1);
    }
  }
}

}  // namespace by_tensor_cores

namespace by_multiply_adds {

template <class T, int size, int m, int n>
PARALLEL_DEVICE void add_inner_products(Elements<T, m, n>& sum, const Tile<T, size>& left, const Tile<T, size>& right) {
  constexpr int several = pack_elements<T>;
  using Some = Pack<T, several>;
  const auto some = [](const T* from) { return *reinterpret_cast<const Some*>(from); };
  each_lane([&](int lane) {
    auto& own = sum.at[lane].of;
    PARALLEL_LOOP
    for (int k = 0; k < size; k += several) {
      Some rows[m][2];
      PARALLEL_UNROLL
      for (int i = 0; i < 2 * m; ++i) rows[i / 2][i % 2] = some(left.row(Place{lane, i / 2, 0, i % 2 * 2}.row()) + k);
      PARALLEL_UNROLL
      for (int j = 0; j < n; ++j) {
        const Some columns[2]{some(right.row(Place{lane, 0, j, 0}.column()) + k),
                              some(right.row(Place{lane, 0, j, 1}.column()) + k)};
        PARALLEL_UNROLL
        for (int x = 0; x < several; ++x) PARALLEL_UNROLL
        for (int i = 0; i < m; ++i) PARALLEL_UNROLL
        for (int e = 0; e < 4; ++e) own[i][j][e] += rows[i][e / 2].of[x] * columns[e % 2].of[x];
      }
    }
  });
}
/// An element of another lane of the same row.
template <class T, int m, int n>
PARALLEL_DEVICE T element_of(const Elements<T, m, n>& from, int i, int j, int e, int lane) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(0xffffffffU, from.at.own.of[i][j][e], lane);
#else
  return from.at[lane].of[i][j][e];
#endif
}
template <class T, int size, int m, int n>
PARALLEL_DEVICE void add_weighted_rows(Elements<T, m, size / 8>& sum, const Elements<T, m, n>& weights,
                                       const Tile<T, size>& right) {
  each_lane([&](int lane) {
    auto& own = sum.at[lane].of;
    PARALLEL_UNROLL
    for (int k = 0; k < n; ++k) PARALLEL_LOOP
    for (int t = 0; t < 4; ++t) PARALLEL_UNROLL
    for (int x = 0; x < 2; ++x) {
      const T* const row = right.row(8 * k + 2 * t + x) + Place{lane, 0, 0, 0}.column();
      T rows[m][2];
      PARALLEL_UNROLL
      for (int i = 0; i < 2 * m; ++i)
        rows[i / 2][i % 2] = element_of(weights, i / 2, k, i % 2 * 2 + x, lane / 4 * 4 + t);
      PARALLEL_UNROLL
      for (int j = 0; j < size / 8; ++j) {
        const Pack<T, 2> columns = *reinterpret_cast<const Pack<T, 2>*>(row + 8 * j);
        PARALLEL_UNROLL
        for (int i = 0; i < m; ++i) PARALLEL_UNROLL
        for (int e = 0; e < 4; ++e) own[i][j][e] += rows[i][e / 2] * columns.of[e % 2];
      }
    }
  });
}

}  // namespace by_multiply_adds

/// sum += left * right^T, both by rows.
template <class T, int size, int m, int n>
PARALLEL_DEVICE void add_inner_products(Elements<Wide<T>, m, n>& sum, const Tile<T, size>& left,
                                        const Tile<T, size>& right) {
  if constexpr (Half<T>)
    by_tensor_cores::add_inner_products(sum, left, right);
  else
    by_multiply_adds::add_inner_products(sum, left, right);
}
/// sum += weights * right: to every row of `sum` a weighted sum of right's rows. The tensor cores take weights in T.
template <class T, int size, int m, int n>
PARALLEL_DEVICE void add_weighted_rows(Elements<Wide<T>, m, size / 8>& sum, const Elements<Wide<T>, m, n>& weights,
                                       const Tile<T, size>& right) {
  if constexpr (Half<T>)
    by_tensor_cores::add_weighted_rows(sum, weights, right);
  else
    by_multiply_adds::add_weighted_rows(sum, weights, right);
}
/// The rows of a tile: `from`, each element times what factor(place) says.
template <class T, int size, int m, class F>
PARALLEL_DEVICE void write_rows(Elements<Wide<T>, m, size / 8>& from, const Tile<T, size>& to, F factor) {
  from.each([&](const Place& p, Wide<T>& x) { to.row(p.row())[p.column()] = narrow<T>(x * factor(p)); });
}

}  // namespace parallel::internals::cuda
