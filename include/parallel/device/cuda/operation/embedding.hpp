// Rows of a table by index, and their gradients added up. A rank may hold some of the rows: others are zeros, and are
// skipped backward.
#pragma once
#include <limits>

#include <parallel/device/cuda/body/box.hpp>
#include <parallel/device/cuda/body/sort.hpp>

namespace parallel::internals::cuda {

template <class T>
struct Embedding {
  static constexpr int threads = 256, n = pack_elements<T>;
  const int* index;
  const T* table;
  T* out;
  Rows rows;
  Index first, own, whole;  ///< rows of the table that the rank holds, and of all ranks
  template <class Block>
  PARALLEL_DEVICE void operator()(const Block& block) const {
    const Index wanted = index[block.index], row = wanted - first;
    T* const to = out + block.index * rows.length;
    if (row >= 0 && row < own)
      map_along<n>(
          block, rows, to, [](Index, Wide<T> x) { return x; }, Row<T>{table + row * rows.length});
    else
      map_along<n>(block, rows, to,
                   [none = wanted >= 0 && wanted < whole ? Wide<T>{0} : std::numeric_limits<Wide<T>>::quiet_NaN()](
                       Index) { return none; });
  }
};
/// (index, table): no numbers for an index outside the table, so that it shows in the loss, on every rank. Floor: 2 + 2
/// bytes per element of the result in bf16.
template <class T>
void embedding(const Call& call) {
  using Body = Embedding<T>;
  const View &table = call.operands[1], &out = call.results[0];
  Rows rows = Rows::of<Body::n>(table, 1, out);
  rows.count = call.operands[0].elements();
  launch_rows(call, Body{call.operands[0].as<const int>(), table.as<const T>(), out.as<T>(), rows, table.offset[0],
                         table.size[0], table.whole[0]});
}

/// Rows of g, sorted by the row of the table to which they are added, in pieces of `span`. A row of the table whose
/// rows of g lie in one piece is written, or added to where the table has a sum; of others a piece has a partial sum: of
/// the run that began before it, and of the one that goes on behind it.
template <class T, class Out, bool onto_sum>
struct SortedRows {
  static constexpr int threads = 128, n = pack_elements<T>, width = threads * n;
  using W = Wide<T>;
  const int* order;
  RowOfIndex row_of;
  const T* g;
  Out* table;
  W* partial;  ///< [piece][begun before, goes on][column]
  Index places, columns, span, tiles;
  bool packed;

  PARALLEL_DEVICE int row_at(Index place) const { return place >= 0 && place < places ? row_of(order[place]) : -1; }
  PARALLEL_DEVICE W* partial_at(Index piece, bool goes_on) const { return partial + (2 * piece + goes_on) * columns; }
};

/// The sums of one piece.
template <class T, class Out, bool onto_sum>
struct SumRuns : SortedRows<T, Out, onto_sum> {
  using Base = SortedRows<T, Out, onto_sum>;
  using W = typename Base::W;
  static constexpr int threads = Base::threads, n = Base::n;
  explicit SumRuns(const Base& base) : Base(base) {}

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index piece = block.index / this->tiles, begin = piece * this->span,
                tile = block.index % this->tiles * Base::width;
    const Index count = begin + this->span < this->places ? this->span : this->places - begin;
    int* const row = block.template shared<int>() + 1;  // from -1 to count
    int* const place = row + this->span + 1;
    block.each(count + 2, [&](Index k) { row[k - 1] = this->row_at(begin + k - 1); });
    block.each(count, [&](Index k) { place[k] = this->order[begin + k]; });
    block.sync();
    either(this->packed, [&](auto whole) {
      block.each(threads, [&](Index thread) {
        const Index first = tile + thread * n;
        if (first >= this->columns) return;
        Some<W, n> sum{};
        constexpr int ahead = 4;  // rows that are on their way at once
        for (Index from = 0; from < count; from += ahead) {
          Some<W, n> some[ahead];
          for (int k = 0; k < ahead; ++k)
            if (from + k < count)
              some[k] = Row<T>{this->g + place[from + k] * this->columns}.template pack<n, decltype(whole)::value>(
                  first, this->columns);
          for (int k = 0; k < ahead && from + k < count; ++k) {
            for (int e = 0; e < n; ++e) sum.of[e] += some[k].of[e];
            if (from + k + 1 < count && row[from + k + 1] == row[from + k]) continue;
            finish<decltype(whole)::value>(piece, first, row[from + k], row[-1] == row[from + k],
                                           row[from + k + 1] == row[from + k], sum);
            sum = {};
          }
        }
      });
    });
  }

 private:
  template <bool packed>
  PARALLEL_DEVICE void finish(Index piece, Index first, int row, bool begun_before, bool goes_on,
                              const Some<W, n>& sum) const {
    if (row == this->row_of.rows) return;
    if (begun_before || goes_on) return write<packed>(this->partial_at(piece, !begun_before) + first, first, sum);
    Out* const to = this->table + row * this->columns;
    if constexpr (onto_sum) {
      Some<W, n> all = Row<Out>{to}.template pack<n, packed>(first, this->columns);
      for (int e = 0; e < n; ++e) all.of[e] += sum.of[e];
      write<packed>(to + first, first, all);
    } else {
      write<packed>(to + first, first, sum);
    }
  }
  template <bool packed, class To>
  PARALLEL_DEVICE void write(To* to, Index first, const Some<W, n>& sum) const {
    if constexpr (packed)
      store(to, sum);
    else
      for (int e = 0; e < n && first + e < this->columns; ++e) to[e] = narrow<To>(sum.of[e]);
  }
};

/// The sums of runs that lie in several pieces: the block of the piece where one begins follows it.
template <class T, class Out, bool onto_sum>
struct JoinRuns : SortedRows<T, Out, onto_sum> {
  using Base = SortedRows<T, Out, onto_sum>;
  using W = typename Base::W;
  static constexpr int threads = Base::threads, n = Base::n;
  explicit JoinRuns(const Base& base) : Base(base) {}

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index piece = block.index / this->tiles, begin = piece * this->span, end = begin + this->span,
                tile = block.index % this->tiles * Base::width;
    const int row = this->row_at(end - 1);
    if (row == this->row_of.rows || row < 0 || this->row_at(end) != row || this->row_at(begin - 1) == row) return;
    // the last piece that has some of it, by bisection: one that has, one that has not
    Index last = piece + 1, after = blocks_of(this->places, this->span);
    while (after - last > 1) {
      const Index middle = (last + after) / 2;
      (this->row_at(middle * this->span) == row ? last : after) = middle;
    }
    block.each(Base::width, [&](Index i) {
      if (tile + i >= this->columns) return;
      W sum = this->partial_at(piece, true)[tile + i];
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
      for (Index next = piece + 1; next <= last; ++next) sum += this->partial_at(next, false)[tile + i];
      Out& to = this->table[row * this->columns + tile + i];
      if constexpr (onto_sum) sum = widen(to) + sum;
      to = narrow<Out>(sum);
    });
  }
};

/// Adds the rows of g up by index, in the order of the indices: to a table of zeros, or onto a sum that it has.
template <class Out, bool onto_sum>
void add_rows(const Call& call, const View& index, const View& g) {
  const View& table = call.results[0];
  const Index places = index.elements(), columns = table.size[1];
  if (places * table.elements() == 0) return;
  with_element<Out>(g.dtype, [&]<class T>(T) {
    using Base = SortedRows<T, Out, onto_sum>;
    using W = Wide<T>;
    const auto blocks_of_16 = [](Index bytes) { return blocks_of(bytes, 16) * 16; };
    const Index sorting = blocks_of_16(room_to_sort(places) * static_cast<Index>(sizeof(int))),
                room = static_cast<Index>(Gpu::workspace_bytes) - sorting;
    const RowOfIndex row_of{index.as<const int>(), table.offset[0], table.size[0]};
    auto* const workspace = static_cast<std::byte*>(gpu(call).workspace());
    Index span = 32;  // more where the partial sums are too many
    const auto partials = [&] { return blocks_of(places, span) * 2 * columns * static_cast<Index>(sizeof(W)); };
    while (span < places && partials() > room) span *= 2;
    constexpr Index most_span = 4096;
    if (span > most_span || partials() > room)
      throw GpuFailed("the gradient of an embedding of " + std::to_string(places) +
                      " indices needs more memory than there is for it; use smaller micro-batches");
    const cudaStream_t stream = gpu(call).stream();
    const int* const order = sorted(stream, row_of, places, table.size[0], reinterpret_cast<int*>(workspace));
    const Base base{order,
                    row_of,
                    g.as<const T>(),
                    table.as<Out>(),
                    reinterpret_cast<W*>(workspace + sorting),
                    places,
                    columns,
                    span,
                    blocks_of(columns, Base::width),
                    columns % Base::n == 0 && lies_at(g.data, 16) && lies_at(table.data, 16)};
    const Index blocks = blocks_of(places, span) * base.tiles;
    launch(stream, blocks, SumRuns<T, Out, onto_sum>(base), static_cast<std::size_t>(2 * span + 2) * sizeof(int));
    launch(stream, blocks, JoinRuns<T, Out, onto_sum>(base));
  });
}
/// (index, g): the rows of g added up by index. Floor: 2 bytes per element of g and of the table in bf16; what the sort
/// reads and writes is little.
template <class Out>
void embedding_gradient(const Call& call) {
  zero(call);
  add_rows<Out, false>(call, call.operands[0], call.operands[1]);
}
/// (sum, index, g): the rows of g added up by index, and then to sum, in its storage. Floor: 6 bytes per element of g
/// in bf16.
template <class Out>
void accumulate_rows(const Call& call) {
  add_rows<Out, true>(call, call.operands[1], call.operands[2]);
}

}  // namespace parallel::internals::cuda
