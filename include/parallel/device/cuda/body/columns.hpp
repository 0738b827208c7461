// Sums over many rows, column by column, in two stages: slices of the rows, then the slices' sums. How rows are cut
// depends on their number only, so that every GPU finds the same bits.
#pragma once
#include <algorithm>

#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// One stage: of the rows of every slice, `Terms::sums` sums a column. `Terms`: n columns at a time, `add<packed>(row,
/// first column, sums)`, which may add anything for columns that there are not.
template <class Terms, class Out>
struct ColumnSums {
  static constexpr int threads = 256, warps = threads / Warp::threads, n = Terms::n, width = Warp::threads * n,
                       sums = Terms::sums;
  using W = typename Terms::W;
  static constexpr std::size_t shared = sizeof(W) * sums * warps * width;
  Terms terms;
  Index rows, columns, of_slice, tiles;
  bool packed;
  Out* to[sums];  ///< [slice][column], or none

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index slice = block.index / tiles, tile = block.index % tiles * width;
    const Index begin = slice * of_slice, end = begin + of_slice < rows ? begin + of_slice : rows;
    W* const found = block.template shared<W>();  // [sum][warp][column]
    either(packed, [&](auto whole) {
      block.each(threads, [&](Index thread) {
        const Index warp = thread / Warp::threads, lane = thread % Warp::threads, first = tile + lane * n;
        Several<W, n> sum[sums];
        if (first < columns) {
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
          for (Index r = begin + warp; r < end; r += warps) terms.template add<decltype(whole)::value>(r, first, sum);
        }
        for (int k = 0; k < sums; ++k)
          for (int e = 0; e < n; ++e) found[(k * warps + warp) * width + lane * n + e] = sum[k].of[e];
      });
    });
    block.sync();
    for (int k = 0; k < sums; ++k)
      block.each(width, [&](Index column) {
        if (tile + column >= columns || to[k] == nullptr) return;
        W all = 0;
        for (int warp = 0; warp < warps; ++warp) all += found[(k * warps + warp) * width + column];
        to[k][slice * columns + tile + column] = narrow<Out>(all);
      });
  }
};

/// The sums of slices as rows: [sum][slice][column].
template <class Number, int count>
struct SliceTerms {
  static constexpr int n = pack_elements<Number>, sums = count;
  using W = Number;
  const W* from;
  Index rows, columns;
  template <bool packed>
  PARALLEL_DEVICE void add(Index r, Index first, Several<W, n> (&sum)[sums]) const {
    for (int k = 0; k < sums; ++k) {
      const auto some = Row<W>{from + (k * rows + r) * columns}.template pack<n, packed>(first, columns);
      for (int e = 0; e < n; ++e) sum[k].of[e] += some.of[e];
    }
  }
};

/// One stage on a GPU's stream.
template <class Terms, class Out>
void sum_slices(Gpu& gpu, const Terms& terms, Index rows, Index columns, Index of_slice, bool packed,
                Out* const (&to)[Terms::sums]) {
  using Body = ColumnSums<Terms, Out>;
  Body body{terms, rows, columns, of_slice, blocks_of(columns, Body::width), packed, {}};
  for (int k = 0; k < Terms::sums; ++k) body.to[k] = to[k];
  launch(gpu.stream(), body.tiles * std::max<Index>(blocks_of(rows, of_slice), 1), body, Body::shared);
}
/// How rows are cut into slices whose sums fit into the workspace.
struct Slices {
  Index count, rows;  ///< how many, of so many rows each
  template <class W>
  static Slices of(Index rows, Index columns, Index sums, Index least, Index most) {
    const Index room = static_cast<Index>(Gpu::workspace_bytes / sizeof(W)) / (sums * std::max<Index>(columns, 1));
    const Index of_slice =
        std::max<Index>(blocks_of(rows, std::clamp<Index>(std::min(blocks_of(rows, least), room), 1, most)), 1);
    return {std::max<Index>(blocks_of(rows, of_slice), 1), of_slice};
  }
};
/// to[k][column] = the k-th sum of the slices, partial[k][slice][column]; where to[k] is none it is not asked for.
template <class W, class Out, int sums>
void add_slices(Gpu& gpu, const W* partial, Index slices, Index columns, Out* const (&to)[sums]) {
  using Again = SliceTerms<W, sums>;
  sum_slices(gpu, Again{partial, slices, columns}, slices, columns, slices, columns % Again::n == 0, to);
}
/// to[k][column] = the k-th sum over all rows; where to[k] is none it is not asked for.
template <class Terms, class Out>
void sum_columns(Gpu& gpu, const Terms& terms, Index rows, Index columns, bool packed, Out* const (&to)[Terms::sums]) {
  using W = typename Terms::W;
  constexpr Index least = 64, most_slices = 128;
  const Slices slices = Slices::of<W>(rows, columns, Terms::sums, least, most_slices);
  if (slices.count == 1) return sum_slices(gpu, terms, rows, columns, slices.rows, packed, to);
  W* const partial = static_cast<W*>(gpu.workspace());
  W* parts[Terms::sums];
  for (int k = 0; k < Terms::sums; ++k) parts[k] = partial + k * slices.count * columns;
  sum_slices(gpu, terms, rows, columns, slices.rows, packed, parts);
  add_slices(gpu, partial, slices.count, columns, to);
}

}  // namespace parallel::internals::cuda
