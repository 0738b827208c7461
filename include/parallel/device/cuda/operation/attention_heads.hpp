// What attention and its gradient on a GPU have in common: where the heads lie, which keys a query sees, which
// probabilities are dropped.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <parallel/device/cuda/body/launch.hpp>
#include <parallel/device/cuda/body/multiply.hpp>
#include <parallel/device/cuda/gpu.hpp>
#include <parallel/device/stream.hpp>
#include <parallel/operation/attention.hpp>

namespace parallel::internals::cuda {

/// 2 to the power of x; for results of bf16 and f16 to 22 bits.
template <class T>
PARALLEL_DEVICE Wide<T> power_of_two(Wide<T> x) {
#if defined(__CUDA_ARCH__)
  if constexpr (Half<T>) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
#endif
  return std::exp2(x);
}

/// How the work is cut: a warp has 16 m rows, which stay, and meets 8 n others at a time.
struct Tiling {
  int m, n, warps;
};

/// A call's operands and attributes, as blocks read them: rows of one head at a time, of queries [batch, queries,
/// heads, ...] or of keys [batch, keys, groups, ...]. `plain`: all of them stand as they are counted, and there are no
/// documents, so that a kernel keeps no registers for either.
template <class T, bool plain = false>
struct Heads {
  using W = Wide<T>;
  const T *q, *k, *v;
  int batch, queries, keys, heads, groups, size, value_size;
  int sharing;  ///< how many heads, counted over all ranks, share keys
  int heads_begin, groups_begin, queries_begin, keys_begin, batch_begin;  ///< of the part
  std::int64_t all_heads, all_queries, all_keys;
  Standing batch_order, query_order, key_order;  ///< of the full tensors
  bool ordered;                                  ///< some of them stand otherwise than they are counted
  W exponent;                                    ///< of 2 for a product of query and key; not negative
  bool causal, packed;
  const int* seen;               ///< [batch, keys], or none
  const int* documents_of_keys;  ///< [batch, keys], or none
  const int* documents;          ///< of queries, [batch, queries]
  const int* position;           ///< of the first query of all ranks, or none
  std::uint64_t dropped;         ///< random words below it drop a probability
  W growth;                      ///< of the others
  StreamOf stream_of;
  int first_batch = 0;  ///< that this launch is for

  explicit Heads(const Call& call)
      : q(call.operands[0].as<const T>()),
        k(call.operands[1].as<const T>()),
        v(call.operands[2].as<const T>()),
        batch(whole(call.operands[0].size[0])),
        queries(whole(call.operands[0].size[1])),
        keys(whole(call.operands[1].size[1])),
        heads(whole(call.operands[0].size[2])),
        groups(whole(call.operands[1].size[2])),
        size(whole(call.operands[0].size[3])),
        value_size(whole(call.operands[2].size[3])),
        sharing(whole(call.operands[0].whole[2] / call.operands[1].whole[2])),
        heads_begin(whole(call.operands[0].offset[2])),
        groups_begin(whole(call.operands[1].offset[2])),
        queries_begin(whole(call.operands[0].offset[1])),
        keys_begin(whole(call.operands[1].offset[1])),
        batch_begin(whole(call.operands[0].offset[0])),
        all_heads(call.operands[0].whole[2]),
        all_queries(call.operands[0].whole[1]),
        all_keys(call.operands[1].whole[1]),
        batch_order(call.operands[0].standing(0)),
        query_order(call.operands[0].standing(1)),
        key_order(call.operands[1].standing(1)),
        ordered(query_order.order != Order::contiguous || key_order.order != Order::contiguous),
        exponent(static_cast<W>(call.reals[0] * std::numbers::log2e)) {
    const operation::Attending attending(call.ints);
    causal = attending.causal;
    seen = attending.masked ? call.operands[3].as<const int>() : nullptr;
    documents_of_keys = attending.packed ? call.operands[3].as<const int>() : nullptr;
    documents = attending.packed ? call.operands[4].as<const int>() : nullptr;
    position = attending.positioned ? call.operands[attending.scalars() - 1].as<const int>() : nullptr;
    dropped = dropped_below(call.reals[1]);
    growth = static_cast<W>(1 / (1 - call.reals[1]));
    if (dropped > 0) stream_of = {call, attending.scalars(), {call.ints[3], call.ints[4], call.ints[5]}};
    constexpr int several = pack_elements<T>;
    packed = size % several == 0 && value_size % several == 0;
    const auto look = [&](const auto& views) {
      for (const View& view : views)
        if (view.rank == 4) packed = packed && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
    };
    look(call.operands);
    look(call.results);
  }

  template <class U>
  PARALLEL_DEVICE MatrixRows<U> of_queries(U* data, int b, int head, int elements) const {
    const std::int64_t stride = std::int64_t{heads} * elements;
    return {data + b * queries * stride + head * elements, stride, queries, elements};
  }
  template <class U>
  PARALLEL_DEVICE MatrixRows<U> of_keys(U* data, int b, int group, int elements) const {
    const std::int64_t stride = std::int64_t{groups} * elements;
    return {data + b * keys * stride + group * elements, stride, keys, elements};
  }
  PARALLEL_DEVICE std::int64_t statistic(int b, int head, int query) const {
    return (std::int64_t{b} * queries + query) * heads + head;
  }
  PARALLEL_DEVICE int group_of(int head) const { return (heads_begin + head) / sharing - groups_begin; }
  /// The last key that query 0 may see where attention is causal, and with it every query one more, where both stand as
  /// they are counted.
  PARALLEL_DEVICE int reach() const {
    constexpr std::int64_t far = 1 << 30;
    const std::int64_t first = queries_begin - keys_begin + (position != nullptr ? std::int64_t{*position} : 0);
    return static_cast<int>(first < -far ? -far : first > far ? far : first);
  }
  /// How many keys a query sees where attention is causal: those before the first that it does not see.
  PARALLEL_DEVICE int visible(int reach, int query) const {
    if (plain || !ordered) return query + reach + 1;
    const int last = query < queries ? query : queries - 1;
    const std::int64_t stands = query_order.element(queries_begin + last) + (position != nullptr ? *position : 0);
    return static_cast<int>(key_order.below(keys_begin, keys, stands + 1));
  }
  /// Gives `hidden` to those scores whose query does not see its key: of queries (rows) and keys (columns), or where
  /// `turned` of keys and queries, so many of each from these on. Most tiles need not ask for each score.
  template <bool turned = false, class Scores>
  PARALLEL_DEVICE void hide(Scores& scores, W hidden, int reach, int b, int first_query, int query_count, int first_key,
                            int key_count) const {
    if (first_query + query_count > queries || first_key + key_count > keys ||
        (causal && first_key + key_count > visible(reach, first_query)))
      scores.each([&](const Place& e, W& x) {
        const int query = first_query + (turned ? e.column() : e.row()),
                  key = first_key + (turned ? e.row() : e.column());
        if (query >= queries || key >= keys || (causal && key >= visible(reach, query))) x = hidden;
      });
    if (seen != nullptr)
      scores.each([&](const Place& e, W& x) {
        const int key = first_key + (turned ? e.row() : e.column());
        if (key < keys && seen[std::int64_t{b} * keys + key] == 0) x = hidden;
      });
    if (!plain && documents != nullptr)
      scores.each([&](const Place& e, W& x) {
        const int query = first_query + (turned ? e.column() : e.row()),
                  key = first_key + (turned ? e.row() : e.column());
        if (query < queries && key < keys &&
            documents[std::int64_t{b} * queries + query] != documents_of_keys[std::int64_t{b} * keys + key])
          x = hidden;
      });
  }
  /// Whether the position that a query is given has no key.
  PARALLEL_DEVICE bool stands_outside(int reach, int query) const {
    const std::int64_t stands = !plain && ordered
                                    ? query_order.element(queries_begin + query) + (position != nullptr ? *position : 0)
                                    : std::int64_t{reach} + keys_begin + query;
    return position != nullptr && (stands < 0 || stands >= all_keys);
  }

  /// kept[i * columns + j] = whether the probability of query + i and key + j stays. Words come as RandomStream says,
  /// four by one counter.
  template <class Block>
  PARALLEL_DEVICE void draw_kept(const Block& block, int b, int head, int query, int rows, int key, int columns,
                                 std::uint8_t* kept) const {
    constexpr int counters = RandomStream::counters, words = RandomStream::block;
    const RandomStream stream = stream_of.get();
    if (!plain && ordered) {
      block.each(std::int64_t{rows} * columns, [&](std::int64_t at) {
        const int i = static_cast<int>(at / columns), j = static_cast<int>(at % columns);
        if (query + i >= queries || key + j >= keys) return;
        const std::int64_t of_head =
                               (batch_order.element(batch_begin + b) * all_heads + heads_begin + head) * all_queries,
                           element = (of_head + query_order.element(queries_begin + query + i)) * all_keys +
                                     key_order.element(keys_begin + key + j),
                           within = element % words;
        const auto drawn = stream.words_of(static_cast<std::uint64_t>(element / words * counters + within % counters));
        kept[i * columns + j] = drawn[static_cast<std::size_t>(within / counters)] >= dropped;
      });
      return;
    }
    const int spans = (columns + words - 1) / words + 1;  // blocks of words that a row may touch
    block.each(std::int64_t{spans} * rows * counters, [&](std::int64_t at) {
      const int counter = static_cast<int>(at % counters), i = static_cast<int>(at / counters % rows),
                span = static_cast<int>(at / counters / rows);
      const std::int64_t in_batch = plain ? batch_begin + b : batch_order.element(batch_begin + b),
                         of_row = (in_batch * all_heads + heads_begin + head) * all_queries + queries_begin + query + i;
      const std::int64_t first = of_row * all_keys + keys_begin + key, of_block = first / words + span;
      if (of_block * words >= first + columns) return;
      const auto drawn = stream.words_of(static_cast<std::uint64_t>(of_block * counters + counter));
      for (int word = 0; word < 4; ++word) {
        const std::int64_t j = of_block * words + word * counters + counter - first;
        if (j >= 0 && j < columns) kept[i * columns + j] = drawn[static_cast<std::size_t>(word)] >= dropped;
      }
    });
  }

 private:
  static int whole(std::int64_t extent) {
    if (extent > (1 << 30))
      throw GpuFailed("attention on the GPU has at most 2^30 rows, heads or elements of a head, but here there are " +
                      std::to_string(extent));
    return static_cast<int>(extent);
  }
};

/// Calls f(heads, std::integral_constant of the elements that a tile's rows have) for heads of so many elements.
template <class Heads, class F>
void with_size(const Heads& at, F f) {
  const int size = std::max(at.size, at.value_size);
  if (size <= 64) return f(at, std::integral_constant<int, 64>{});
  if (size <= 128) return f(at, std::integral_constant<int, 128>{});
  if (size <= 256) return f(at, std::integral_constant<int, 256>{});
  throw GpuFailed("attention on the GPU has heads of at most 256 elements, but here they have " + std::to_string(size) +
                  "; use more heads");
}
/// The same of a call. Only halves, whose kernels are bound by registers, have kernels of their own for what is plain.
template <class T, class F>
void with_heads(const Call& call, F f) {
  const Heads<T> at(call);
  if constexpr (Half<T>)
    if (at.documents == nullptr && !at.ordered && at.batch_order.order == Order::contiguous)
      return with_size(Heads<T, true>(call), f);
  with_size(at, f);
}

}  // namespace parallel::internals::cuda
