// Places in the order of small whole numbers: a stable counting sort, eight bits at a time. No order of threads shows
// in it.
#pragma once
#include <bit>

#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// To which row of a rank's part of a table an index belongs; `rows` for what other ranks hold, or nobody.
struct RowOfIndex {
  const int* index;
  Index first, rows;
  PARALLEL_DEVICE int operator()(Index i) const {
    const Index row = index[i] - first;
    return static_cast<int>(row >= 0 && row < rows ? row : rows);
  }
};

/// One digit of the keys, eight bits from `shift`: how many places of every piece of 256 have which, and, when those
/// counts have been added up, where each goes.
template <class Key, bool moves>
struct SortDigit {
  static constexpr int threads = 256, digits = 256;
  Key key;
  const int* from;  ///< places so far, or none where they stand as they are
  int* to;
  int* counts;  ///< [digit][piece]
  Index places, pieces;
  int shift;
  static constexpr std::size_t shared = threads * sizeof(int);

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    int* const digit = block.template shared<int>();
    const Index first = block.index * threads;
    const auto place = [&](Index t) { return from != nullptr ? from[first + t] : static_cast<int>(first + t); };
    block.each(threads, [&](Index t) { digit[t] = first + t < places ? key(place(t)) >> shift & (digits - 1) : -1; });
    block.sync();
    block.each(threads, [&](Index t) {
      int equal = 0;
      if constexpr (moves) {
        if (digit[t] < 0) return;
        for (int other = 0; other < t; ++other) equal += digit[other] == digit[t];
        to[counts[digit[t] * pieces + block.index] + equal] = place(t);
      } else {
        for (int other = 0; other < threads; ++other) equal += digit[other] == t;
        counts[t * pieces + block.index] = equal;
      }
    });
  }
};
/// counts[i] = the sum of those before it; one block.
struct SumsBefore {
  static constexpr int threads = 1024;
  int* counts;
  Index n;
  static constexpr std::size_t shared = 2 * threads * sizeof(int);

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index own = (n + threads - 1) / threads;
    int *sums = block.template shared<int>(), *next = sums + threads;
    const auto each_own = [&](Index t, auto f) {
      for (Index i = t * own; i < (t + 1) * own && i < n; ++i) f(i);
    };
    block.each(threads, [&](Index t) {
      int sum = 0;
      each_own(t, [&](Index i) { sum += counts[i]; });
      sums[t] = sum;
    });
    block.sync();
    for (int apart = 1; apart < threads; apart *= 2) {
      block.each(threads, [&](Index t) { next[t] = sums[t] + (t >= apart ? sums[t - apart] : 0); });
      block.sync();
      int* const swapped = sums;
      sums = next;
      next = swapped;
    }
    block.each(threads, [&](Index t) {
      int sum = t > 0 ? sums[t - 1] : 0;
      each_own(t, [&](Index i) {
        const int here = counts[i];
        counts[i] = sum;
        sum += here;
      });
    });
  }
};

/// Room that `sorted` needs, in numbers.
constexpr Index room_to_sort(Index places) { return 2 * places + 256 * blocks_of(places, 256); }
/// Places [0, n) by their keys, which are at most `most`; equal ones in the order in which they stand.
template <class Key>
const int* sorted(cudaStream_t stream, const Key& key, Index places, Index most, int* room) {
  const Index pieces = blocks_of(places, 256);
  int *from = nullptr, *to = room, *other = room + places, *const counts = room + 2 * places;
  for (int shift = 0; shift == 0 || most >> shift != 0; shift += 8) {
    launch(stream, pieces, SortDigit<Key, false>{key, from, to, counts, places, pieces, shift},
           SortDigit<Key, false>::shared);
    launch(stream, 1, SumsBefore{counts, 256 * pieces}, SumsBefore::shared);
    launch(stream, pieces, SortDigit<Key, true>{key, from, to, counts, places, pieces, shift},
           SortDigit<Key, true>::shared);
    from = to;
    to = other;
    other = const_cast<int*>(from);
  }
  return from;
}

}  // namespace parallel::internals::cuda
