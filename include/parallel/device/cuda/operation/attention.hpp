// Attention on a GPU, whose scores exist in registers only: a block has some queries of a head and walks over the keys,
// with the largest score and the sum of exponentials so far ("FlashAttention-2", Dao, 2023). No sum depends on an order
// that varies: a result has the same bits in every run.
#pragma once
#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/cuda/operation/attention_heads.hpp>

namespace parallel::internals::cuda {

/// In bf16 and f16 a plain block of heads of 64 elements takes 233 registers a thread and 54 KiB of shared memory, of
/// 128 elements 246 and 68 KiB: on Hopper two blocks, eight warps, are on a multiprocessor, bound by registers. (By
/// ptxas of CUDA 13 for sm_90, without spills; not measured.)
template <class T, int size>
constexpr Tiling forward_tiling() {
  constexpr std::size_t row = sizeof(T) * size;
  if constexpr (Half<T>)
    return size == 64 ? Tiling{2, 8, 4} : size == 128 ? Tiling{2, 4, 4} : Tiling{1, 2, 4};
  else
    return {1, row <= 256 ? 4 : 2, row <= 512 ? 4 : 1};
}

/// (q, k, v, ...): the result and, per query, the logarithm of the sum of exponentials of its scores.
template <class T, int size, bool plain>
struct AttentionForward {
  using W = Wide<T>;
  static constexpr Tiling tiling = forward_tiling<T, size>();
  static constexpr int m = tiling.m, n = tiling.n, warps = tiling.warps, threads = 32 * warps, rows = 16 * m * warps,
                       columns = 8 * n;
  using In = Tile<T, size>;
  Heads<T, plain> at;
  T* out;
  W* statistic;

  static constexpr std::size_t keys_at = In::bytes(rows), values_at = keys_at + 2 * In::bytes(columns),
                               kept_at = values_at + 2 * In::bytes(columns);
  std::size_t shared() const { return kept_at + (at.dropped > 0 ? rows * columns : 0); }
  std::int64_t blocks() const { return std::int64_t{at.batch} * at.heads * blocks_of(at.queries, rows); }

  /// What a warp keeps of its queries: of products with keys the largest, of probabilities the sum.
  struct State {
    Elements<W, m, size / 8> sums;
    RowValues<W, m> largest, total;
  };

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const auto tiles = static_cast<int>(blocks_of(at.queries, rows));
    const auto of_head = static_cast<int>(block.index / tiles);
    const int head = of_head % at.heads, b = of_head / at.heads, group = at.group_of(head);
    // those that see the most keys begin first
    const int query = (tiles - 1 - static_cast<int>(block.index % tiles)) * rows;
    const int reach = at.reach(), last = query + rows < at.queries ? query + rows - 1 : at.queries - 1;
    // of the keys that any of them sees
    const int seen = at.visible(reach, last), end = !at.causal || seen > at.keys ? at.keys : seen;
    const In q{block.template shared<T>()};
    const auto keys = [&](int key) {
      return In{block.template shared<T>(keys_at + In::bytes(key / columns % 2 * columns))};
    };
    const auto values = [&](int key) {
      return In{block.template shared<T>(values_at + In::bytes(key / columns % 2 * columns))};
    };
    std::uint8_t* const kept = block.template shared<std::uint8_t>(kept_at);
    const MatrixRows<const T> from_keys = at.of_keys(at.k, b, group, at.size),
                              from_values = at.of_keys(at.v, b, group, at.value_size);

    Copies copies;
    const auto fetch = [&](int key) {
      if (key >= end) return;
      stage<columns>(block, copies, at.packed, from_keys, key, keys(key));
      stage<columns>(block, copies, at.packed, from_values, key, values(key));
    };
    PerWarp<State, warps> of;
    in_warps<warps>(
        [&](int w) { of[w].largest.each([](const Place&, W& x) { x = -std::numeric_limits<W>::infinity(); }); });
    stage<rows>(block, copies, at.packed, at.of_queries(at.q, b, head, at.size), query, q);
    fetch(0);
    for (int key = 0; key < end; key += columns) {
      copies.wait();
      block.sync();
      fetch(key + columns);
      if (at.dropped > 0) {
        at.draw_kept(block, b, head, query, rows, key, columns, kept);
        block.sync();
      }
      in_warps<warps>([&](int w) {
        const int own = w * 16 * m;
        if (at.causal && key >= at.visible(reach, query + own + 16 * m - 1))
          return;  // behind all that this warp's queries see
        Elements<W, m, n> p;
        add_inner_products(p, q.from(own), keys(key));
        at.hide(p, -std::numeric_limits<W>::infinity(), reach, b, query + own, 16 * m, key, columns);
        weigh(of[w], p);
        if (at.dropped > 0)
          p.each([&](const Place& e, W& x) {
            x = kept[(own + e.row()) * columns + e.column()] != 0 ? x * at.growth : W{0};
          });
        add_weighted_rows(of[w].sums, p, values(key));
      });
    }
    copies.wait();
    block.sync();
    in_warps<warps>([&](int w) { finish(of[w], reach, b, head, query + w * 16 * m, q.from(w * 16 * m)); });
    block.sync();
    unstage(block, at.packed, q, at.of_queries(out, b, head, at.value_size), query, rows);
  }

 private:
  /// Products become probabilities, but for the division by their sum; what was summed before is fitted to a larger
  /// largest score.
  PARALLEL_DEVICE void weigh(State& s, Elements<W, m, n>& p) const {
    RowValues<W, m> largest = s.largest, shift, fitting;
    const auto larger = [](W a, W b) { return std::fmax(a, b); };  // what is no number comes back below
    p.each([&](const Place& e, W& x) { largest[e] = larger(largest[e], x); });
    largest.combine(larger);
    largest.each([&](const Place& e, W& x) {
      shift[e] = x == -std::numeric_limits<W>::infinity() ? W{0} : x * at.exponent;  // sees nothing so far
      fitting[e] = power_of_two<T>(s.largest[e] * at.exponent - shift[e]);
      s.largest[e] = x;
      s.total[e] *= fitting[e];
    });
    p.each([&](const Place& e, W& x) { s.total[e] += x = power_of_two<T>(x * at.exponent - shift[e]); });
    s.sums.each([&](const Place& e, W& x) { x *= fitting[e]; });
  }
  PARALLEL_DEVICE void finish(State& s, int reach, int b, int head, int query, const In& to) const {
    RowValues<W, m> share;
    s.total.combine(Plus{});
    s.total.each([&](const Place& e, W& x) {
      const int own = query + e.row();
      share[e] = at.stands_outside(reach, own) ? std::numeric_limits<W>::quiet_NaN() : x > 0 ? 1 / x : W{0};
      if (e.lane % 4 == 0 && own < at.queries)
        statistic[at.statistic(b, head, own)] =
            x == 0 ? std::numeric_limits<W>::lowest()
                   : (s.largest[e] * at.exponent + std::log2(x)) * std::numbers::ln2_v<W>;
    });
    write_rows(s.sums, to, [&](const Place& e) { return share[e]; });
  }
};

template <class T>
void attention(const Call& call) {
  with_heads<T>(call, [&]<int size, bool plain>(const Heads<T, plain>& at, std::integral_constant<int, size>) {
    const AttentionForward<T, size, plain> body{at, call.results[0].as<T>(), call.results[1].as<Wide<T>>()};
    launch(gpu(call).stream(), body.blocks(), body, body.shared());
  });
}

template <class T>
struct JoinAttention {
  using W = Wide<T>;
  const T *a, *b;
  const W *of_a, *of_b;
  T* out;
  W* statistic;
  Index size;
  PARALLEL_DEVICE void operator()(Index i) const {
    const Index r = i / size;
    const W largest = std::fmax(of_a[r], of_b[r]), share_a = std::exp(of_a[r] - largest),
            share_b = std::exp(of_b[r] - largest), sum = share_a + share_b;
    if (i % size == 0) statistic[r] = largest + std::log(sum);
    out[i] = narrow<T>(widen(a[i]) * (share_a / sum) + widen(b[i]) * (share_b / sum));
  }
};
/// (result, statistic, result, statistic): each row by its share of the sum of exponentials, and the logarithm of that.
/// Floor: 6 bytes.
template <class T>
void join_attention(const Call& call) {
  using W = Wide<T>;
  const Index all = call.results[0].elements(), rows = call.results[1].elements();
  launch_each(
      gpu(call).stream(), all,
      JoinAttention<T>{call.operands[0].as<const T>(), call.operands[2].as<const T>(), call.operands[1].as<const W>(),
                       call.operands[3].as<const W>(), call.results[0].as<T>(), call.results[1].as<W>(), all / rows});
}

}  // namespace parallel::internals::cuda
