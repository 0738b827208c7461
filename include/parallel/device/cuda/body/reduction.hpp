// Reductions over dimensions: what is combined, and by which blocks. The order in which terms are combined depends on
// extents alone, and nothing is added atomically: every run gives the same bits, on every GPU, wherever the terms lie.
//
// Every element is read once. Where the results alone would make too few blocks, each block reduces a part, and a
// second launch reduces the parts, which lie in the GPU's workspace.
#pragma once
#include <cmath>
#include <limits>

#include <parallel/device/cuda/body/map.hpp>

namespace parallel::internals::cuda {

// Each says in what few terms and in what all are combined, with what it begins, and what an element is that is not
// there.

/// The sum of elements of type T, times a factor: few terms in their own width, then in double, so that long sums lose
/// little.
template <class T>
struct SumOf {
  using From = T;
  using Few = Wide<T>;
  using All = double;
  using Combine = Plus;
  using Parts = SumOf<double>;  ///< what reduces parts
  static constexpr Few first = 0, absent = 0;
  double factor = 1;
  PARALLEL_DEVICE Few reference(Index) const { return 0; }
  PARALLEL_DEVICE Few term(Few x, Few) const { return x; }
  PARALLEL_DEVICE All done(All sum) const { return factor * sum; }
  Parts parts() const { return {factor}; }
};
/// How many elements equal the result's own number.
template <class T>
struct CountOf {
  using From = T;
  using Few = Wide<T>;
  using All = double;
  using Combine = Plus;
  using Parts = SumOf<double>;
  static constexpr Few first = 0, absent = std::numeric_limits<Few>::quiet_NaN();  // which equals nothing
  const T* numbers;
  PARALLEL_DEVICE Few reference(Index result) const { return widen(numbers[result]); }
  PARALLEL_DEVICE Few term(Few x, Few number) const { return x == number ? Few{1} : Few{0}; }
  PARALLEL_DEVICE All done(All sum) const { return sum; }
  Parts parts() const { return {}; }
};
/// The largest element; what is no number is the largest.
template <class T>
struct MaximumOf {
  using From = T;
  using Few = Wide<T>;
  using All = Wide<T>;
  using Combine = Larger;
  using Parts = MaximumOf<All>;
  static constexpr Few first = -std::numeric_limits<Few>::infinity(), absent = first;
  PARALLEL_DEVICE Few reference(Index) const { return 0; }
  PARALLEL_DEVICE Few term(Few x, Few) const { return x; }
  PARALLEL_DEVICE All done(All largest) const { return largest; }
  Parts parts() const { return {}; }
};
/// The smallest element, which what is no number is, too.
template <class T>
struct MinimumOf {
  using From = T;
  using Few = Wide<T>;
  using All = Wide<T>;
  using Combine = Smaller;
  using Parts = MinimumOf<All>;
  static constexpr Few first = std::numeric_limits<Few>::infinity(), absent = first;
  PARALLEL_DEVICE Few reference(Index) const { return 0; }
  PARALLEL_DEVICE Few term(Few x, Few) const { return x; }
  PARALLEL_DEVICE All done(All smallest) const { return smallest; }
  Parts parts() const { return {}; }
};

/// Some dimensions of a tensor, and where an index of them lies in it.
struct Dimensions {
  int rank = 0;
  Divisor extent[max_rank]{};
  Index step[max_rank]{}, size = 1;

  void add(Index n, Index s) {
    extent[rank] = Divisor(n);
    step[rank++] = s;
    size *= n;
  }
  PARALLEL_DEVICE Index offset(Index i) const {
    Index at = 0;
    for (int d = rank - 1; d > 0; --d) at += extent[d].divide(i) * step[d];
    return at + i * step[0];
  }
};

/// Combines, of every `stride` numbers in shared memory, those that lie `apart` for apart = begin / 2, begin / 4, ...,
/// end: a tree. `planes`: so many times, a number per thread apart.
template <class Combine, int planes, class Block, class All>
PARALLEL_DEVICE void combine_tree(Block& block, All* room, int stride, int begin, int end) {
  for (int apart = begin / 2; apart >= end; apart /= 2) {
    block.each(block.threads, [&](Index t) {
      if ((t & (stride - 1)) < apart)
        for (int j = 0; j < planes; ++j) {
          All& here = room[j * block.threads + t];
          here = Combine{}(here, room[j * block.threads + t + apart]);
        }
    });
    block.sync();
  }
}

/// Several packs of elements, which are on their way at the same time.
template <class What>
struct Packs {
  using From = typename What::From;
  static constexpr int n = pack_elements<From>, several = 4;
  Pack<From, n> of[several];

  /// `left`: so many elements are there; `packed`: all are, at a multiple of 16 bytes.
  PARALLEL_DEVICE void load(int k, const From* from, Index left, bool packed) {
    if (packed)
      of[k] = *reinterpret_cast<const Pack<From, n>*>(from);
    else
      for (int j = 0; j < n; ++j) of[k].of[j] = j < left ? from[j] : narrow<From>(What::absent);
  }
  PARALLEL_DEVICE void none(int k) {
    for (From& x : of[k].of) x = narrow<From>(What::absent);
  }
};

/// Results whose terms lie side by side: a result's terms are rows of `length`, one for each index of `gone`; a `group`
/// of threads shares them, n elements at a time.
template <class What, class Out>
struct ReduceRows {
  using From = typename What::From;
  using Few = typename What::Few;
  using All = typename What::All;
  using Combine = typename What::Combine;
  static constexpr int threads = 256, n = pack_elements<From>, several = Packs<What>::several;
  static constexpr std::size_t shared_bytes = threads * sizeof(All);
  What what;
  const From* x;
  Out* out;
  All* partial;                           ///< [part][result], or nullptr: there is one part
  Index results, length, packs, in_part;  // packs: of a result, and of one part of it
  Dimensions kept, gone;
  Divisor in_row, parts;  // packs
  int group;              // a power of two
  bool packed;            // all packs are whole, and lie at multiples of 16 bytes

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    Index rest = block.index;
    const Index part = parts.divide(rest), in_block = threads / group, first = rest * in_block;
    const Index begin = part * in_part, end = begin + in_part < packs ? begin + in_part : packs;
    All* const room = block.template shared<All>();
    block.each(threads, [&](Index t) {
      const Index result = first + t / group;
      room[t] = result < results ? all(result, begin + (t & (group - 1)), end) : All{What::first};
    });
    block.sync();
    combine_tree<Combine, 1>(block, room, group, group, 1);
    block.each(in_block, [&](Index i) {
      const Index result = first + i;
      if (result >= results) return;
      if (partial != nullptr)
        partial[part * results + result] = room[i * group];
      else
        out[result] = narrow<Out>(what.done(room[i * group]));
    });
  }

 private:
  /// Of a thread, which begins at a pack.
  PARALLEL_DEVICE All all(Index result, Index begin, Index end) const {
    const From* const row = x + kept.offset(result);
    const Few reference = what.reference(result);
    All all = What::first;
    for (Index p = begin; p < end; p += several * group) {
      Packs<What> some;
      for (int s = 0; s < several; ++s) {
        Index r = p + s * group;
        if (r < end) {
          const Index at = in_row.divide(r) * n;
          some.load(s, row + gone.offset(r) + at, length - at, packed);
        } else {
          some.none(s);
        }
      }
      Few few = What::first;
      for (int s = 0; s < several; ++s)
        for (int j = 0; j < n; ++j) few = Combine{}(few, what.term(widen(some.of[s].of[j]), reference));
      all = Combine{}(all, static_cast<All>(few));
    }
    return all;
  }
};

/// Results that lie side by side as the terms do: `across` threads take n of them each, and the other threads of the
/// block other terms.
template <class What, class Out>
struct ReduceColumns {
  using From = typename What::From;
  using Few = typename What::Few;
  using All = typename What::All;
  using Combine = typename What::Combine;
  static constexpr int threads = 256, n = pack_elements<From>, several = Packs<What>::several;
  static constexpr std::size_t shared_bytes = threads * n * sizeof(All);
  What what;
  const From* x;
  Out* out;
  All* partial;
  Index width, packs, in_part;  // results side by side; packs of results; terms of a part
  Dimensions kept, gone;        // kept: but the width
  Divisor in_row, parts;        // packs
  int across;                   // a power of two
  bool packed;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    Index rest = block.index;
    const Index part = parts.divide(rest), first = rest * across;
    const Index begin = part * in_part, end = begin + in_part < gone.size ? begin + in_part : gone.size;
    All* const room = block.template shared<All>();
    block.each(threads, [&](Index t) {
      All all[n];
      for (All& a : all) a = What::first;
      const Index pack = first + (t & (across - 1));
      if (pack < packs) add(all, pack, begin + t / across, end);
      for (int j = 0; j < n; ++j) room[j * threads + t] = all[j];
    });
    block.sync();
    combine_tree<Combine, n>(block, room, threads, threads, across);
    block.each(across * n, [&](Index i) {
      Index outer = first + i / n;
      if (outer >= packs) return;
      const Index column = in_row.divide(outer) * n + i % n, result = outer * width + column;
      if (column >= width) return;
      const All all = room[i % n * threads + i / n];
      if (partial != nullptr)
        partial[part * kept.size * width + result] = all;
      else
        out[result] = narrow<Out>(what.done(all));
    });
  }

 private:
  /// The terms of one thread for one pack of results.
  PARALLEL_DEVICE void add(All (&all)[n], Index outer, Index begin, Index end) const {
    const Index column = in_row.divide(outer) * n, left = width - column, step = threads / across;
    const From* const from = x + kept.offset(outer) + column;
    Few reference[n];
    for (int j = 0; j < n; ++j) reference[j] = j < left ? what.reference(outer * width + column + j) : Few{0};
    for (Index i = begin; i < end; i += several * step) {
      Packs<What> some;
      for (int s = 0; s < several; ++s) {
        if (i + s * step < end)
          some.load(s, from + gone.offset(i + s * step), left, packed);
        else
          some.none(s);
      }
      for (int j = 0; j < n; ++j) {
        Few few = What::first;
        for (int s = 0; s < several; ++s) few = Combine{}(few, what.term(widen(some.of[s].of[j]), reference[j]));
        all[j] = Combine{}(all[j], static_cast<All>(few));
      }
    }
  }
};

}  // namespace parallel::internals::cuda
