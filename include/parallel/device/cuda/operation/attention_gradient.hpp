// The gradients of attention on a GPU: probabilities are made again from one number a query, twice, so that every sum
// stays in one block: once by queries for their gradients, once by keys for theirs.
#pragma once
#include <parallel/device/cuda/operation/attention_heads.hpp>

namespace parallel::internals::cuda {

/// In bf16 and f16 a plain block by queries takes 230 registers a thread for heads of 64 elements and 164 of 128, one
/// by keys 254 and 234, and 55 and 69 KiB of shared memory: on Hopper two blocks, eight warps, are on a multiprocessor.
/// Seven products are computed where five would do, had dq an order that blocks could add in. (By ptxas of CUDA 13 for
/// sm_90, without spills; not measured.)
template <class T, int size>
constexpr Tiling gradient_tiling() {
  constexpr std::size_t row = sizeof(T) * size;
  if constexpr (Half<T>)
    return size == 64 ? Tiling{2, 4, 4} : size == 128 ? Tiling{1, 4, 4} : Tiling{1, 2, 2};
  else
    return {1, row <= 256 ? 4 : 2, row <= 256 ? 4 : row <= 512 ? 2 : 1};
}

/// What both kernels read and how they are cut; `inners`: for every query the inner product of result and cotangent.
template <class T, int size, bool plain>
struct AttentionBackward {
  using W = Wide<T>;
  static constexpr Tiling tiling = gradient_tiling<T, size>();
  static constexpr int m = tiling.m, n = tiling.n, warps = tiling.warps, threads = 32 * warps, rows = 16 * m * warps,
                       columns = 8 * n;
  using In = Tile<T, size>;
  Heads<T, plain> at;
  const T *result, *cotangent;
  const W* log_sums;
  W* inners;
  W factor;

  static constexpr std::size_t second_at = In::bytes(rows), moving_at = 2 * second_at,
                               rest_at = moving_at + In::bytes(4 * columns);
  static constexpr std::size_t kept_at = rest_at + 4 * columns * sizeof(W);
  std::size_t shared() const { return kept_at + (at.dropped > 0 ? rows * columns : 0); }
};

/// The gradient of q.
template <class T, int size, bool plain>
struct QueryGradient : AttentionBackward<T, size, plain> {
  using Base = AttentionBackward<T, size, plain>;
  using Base::at, Base::m, Base::n, Base::warps, Base::rows, Base::columns;
  using typename Base::In;
  using typename Base::W;
  T* dq;

  std::int64_t blocks(int batches) const { return std::int64_t{batches} * at.heads * blocks_of(at.queries, rows); }

  struct State {
    Elements<W, m, size / 8> sums;
    RowValues<W, m> statistic, inner;  // the first in powers of two
  };

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const auto tiles = static_cast<int>(blocks_of(at.queries, rows));
    const auto of_head = static_cast<int>(block.index / tiles);
    const int head = of_head % at.heads, b = at.first_batch + of_head / at.heads, group = at.group_of(head);
    const int query = (tiles - 1 - static_cast<int>(block.index % tiles)) * rows;
    const int reach = at.reach(), last = query + rows < at.queries ? query + rows - 1 : at.queries - 1;
    const int seen = at.visible(reach, last), end = !at.causal || seen > at.keys ? at.keys : seen;
    const In q{block.template shared<T>()}, g{block.template shared<T>(Base::second_at)};
    const auto keys = [&](int key) {
      return In{block.template shared<T>(Base::moving_at + In::bytes(key / columns % 2 * columns))};
    };
    const auto values = [&](int key) {
      return In{block.template shared<T>(Base::moving_at + In::bytes((2 + key / columns % 2) * columns))};
    };
    std::uint8_t* const kept = block.template shared<std::uint8_t>(Base::kept_at);
    const MatrixRows<const T> from_keys = at.of_keys(at.k, b, group, at.size),
                              from_values = at.of_keys(at.v, b, group, at.value_size);

    Copies copies;
    const auto fetch = [&](int key) {
      if (key >= end) return;
      stage<columns>(block, copies, at.packed, from_keys, key, keys(key));
      stage<columns>(block, copies, at.packed, from_values, key, values(key));
    };
    stage<rows>(block, copies, at.packed, at.of_queries(at.q, b, head, at.size), query, q);
    stage<rows>(block, copies, at.packed, at.of_queries(Base::cotangent, b, head, at.value_size), query, g);
    fetch(0);
    copies.wait();
    block.sync();
    PerWarp<State, warps> of;
    in_warps<warps>([&](int w) { begin(of[w], b, head, query + w * 16 * m, g.from(w * 16 * m)); });
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
        if (at.causal && key >= at.visible(reach, query + own + 16 * m - 1)) return;
        Elements<W, m, n> p, dp;
        add_inner_products(p, q.from(own), keys(key));
        add_inner_products(dp, g.from(own), values(key));
        if (at.dropped > 0)
          dp.each([&](const Place& e, W& x) {
            x = kept[(own + e.row()) * columns + e.column()] != 0 ? x * at.growth : W{0};
          });
        State& s = of[w];
        p.each([&](const Place& e, W& x) { x = power_of_two<T>(x * at.exponent - s.statistic[e]); });
        at.hide(p, W{0}, reach, b, query + own, 16 * m, key, columns);
        dp.each([&](const Place& e, W& x) { x = p.at[e.lane].of[e.i][e.j][e.e] * (x - s.inner[e]); });
        add_weighted_rows(s.sums, dp, keys(key));
      });
    }
    copies.wait();
    block.sync();
    in_warps<warps>(
        [&](int w) { write_rows(of[w].sums, q.from(w * 16 * m), [&](const Place&) { return Base::factor; }); });
    block.sync();
    unstage(block, at.packed, q, at.of_queries(dq, b, head, at.size), query, rows);
  }

 private:
  /// What is known of a query before it meets a key. Four lanes share the sum over its elements.
  PARALLEL_DEVICE void begin(State& s, int b, int head, int query, const In& g) const {
    const MatrixRows<const T> results = at.of_queries(Base::result, b, head, at.value_size);
    s.inner.each([&](const Place& e, W& x) {
      const int own = query + e.row();
      if (own >= at.queries) return;
      s.statistic[e] = Base::log_sums[at.statistic(b, head, own)] * std::numbers::log2e_v<W>;
      const T *const ours = results.row(own), *const theirs = g.row(e.row());
      constexpr int several = pack_elements<T>;
      for (int first = e.lane % 4 * several; first < at.value_size; first += 4 * several) {
        Pack<T, several> some{};
        if (at.packed)
          some = *reinterpret_cast<const Pack<T, several>*>(ours + first);
        else
          for (int i = 0; i < several && first + i < at.value_size; ++i) some.of[i] = ours[first + i];
        for (int i = 0; i < several; ++i) x += widen(some.of[i]) * widen(theirs[first + i]);
      }
    });
    s.inner.combine(Plus{});
    s.inner.each([&](const Place& e, W& x) {
      if (e.lane % 4 == 0 && query + e.row() < at.queries)
        Base::inners[at.statistic(b - at.first_batch, head, query + e.row())] = x;
    });
  }
};

/// The gradients of k and v: products lie transposed, keys by queries.
template <class T, int size, bool plain>
struct KeyGradient : AttentionBackward<T, size, plain> {
  using Base = AttentionBackward<T, size, plain>;
  using Base::at, Base::m, Base::n, Base::warps, Base::rows, Base::columns;
  using typename Base::In;
  using typename Base::W;
  T *dk, *dv;

  std::int64_t blocks(int batches) const { return std::int64_t{batches} * at.groups * blocks_of(at.keys, rows); }

  struct State {
    Elements<W, m, size / 8> keys, values;
  };
  /// Some queries of a head, and which of two tiles they are in.
  struct Step {
    int head, query, turn;
  };

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const auto tiles = static_cast<int>(blocks_of(at.keys, rows));
    const auto of_group = static_cast<int>(block.index / tiles);
    const int group = of_group % at.groups, b = at.first_batch + of_group / at.groups,
              key = static_cast<int>(block.index % tiles) * rows;
    const int reach = at.reach();
    // The heads whose keys these are, and of each the queries from the first on that sees one of them.
    const int first_head = larger((group + at.groups_begin) * at.sharing - at.heads_begin, 0);
    const int head_end = smaller((group + 1 + at.groups_begin) * at.sharing - at.heads_begin, at.heads);
    const int begin = at.causal && !at.ordered ? larger(key - reach, 0) : 0;
    const In k{block.template shared<T>()}, v{block.template shared<T>(Base::second_at)};
    const auto queries = [&](const Step& s) {
      return In{block.template shared<T>(Base::moving_at + In::bytes(s.turn * columns))};
    };
    const auto cotangents = [&](const Step& s) {
      return In{block.template shared<T>(Base::moving_at + In::bytes((2 + s.turn) * columns))};
    };
    const auto statistics = [&](const Step& s) {
      return block.template shared<W>(Base::rest_at) + s.turn * 2 * columns;
    };
    std::uint8_t* const kept = block.template shared<std::uint8_t>(Base::kept_at);

    Copies copies;
    const auto fetch = [&](const Step& s) {
      if (s.head >= head_end) return;
      stage<columns>(block, copies, at.packed, at.of_queries(at.q, b, s.head, at.size), s.query, queries(s));
      stage<columns>(block, copies, at.packed, at.of_queries(Base::cotangent, b, s.head, at.value_size), s.query,
                     cotangents(s));
      W* const to = statistics(s);
      block.each(columns, [&](int i) {
        const int own = s.query + i;
        const bool is = own < at.queries;
        to[i] = is ? Base::log_sums[at.statistic(b, s.head, own)] * std::numbers::log2e_v<W> : W{0};
        to[columns + i] = is ? Base::inners[at.statistic(b - at.first_batch, s.head, own)] : W{0};
      });
    };
    stage<rows>(block, copies, at.packed, at.of_keys(at.k, b, group, at.size), key, k);
    stage<rows>(block, copies, at.packed, at.of_keys(at.v, b, group, at.value_size), key, v);
    PerWarp<State, warps> of;
    Step step{begin < at.queries ? first_head : head_end, begin, 0}, next{};
    for (fetch(step); step.head < head_end; step = next) {
      const int head = step.head, query = step.query;
      next = query + columns < at.queries ? Step{head, query + columns, 1 - step.turn}
                                          : Step{head + 1, begin, 1 - step.turn};
      copies.wait();
      block.sync();
      fetch(next);
      if (at.dropped > 0) {
        at.draw_kept(block, b, head, query, columns, key, rows, kept);
        block.sync();
      }
      in_warps<warps>([&](int w) {
        const int own = w * 16 * m;
        if (at.causal && key + own >= at.visible(reach, query + columns - 1)) return;
        const W* const statistic = statistics(step);
        const auto stays = [&](const Place& e) { return kept[e.column() * rows + own + e.row()] != 0; };
        Elements<W, m, n> p;
        add_inner_products(p, k.from(own), queries(step));
        p.each([&](const Place& e, W& x) { x = power_of_two<T>(x * at.exponent - statistic[e.column()]); });
        at.template hide<true>(p, W{0}, reach, b, query, columns, key + own, 16 * m);
        if (at.dropped > 0) {
          Elements<W, m, n> those = p;
          those.each([&](const Place& e, W& x) { x = stays(e) ? x * at.growth : W{0}; });
          add_weighted_rows(of[w].values, those, cotangents(step));
        } else {
          add_weighted_rows(of[w].values, p, cotangents(step));
        }
        Elements<W, m, n> dp;
        add_inner_products(dp, v.from(own), cotangents(step));
        if (at.dropped > 0) dp.each([&](const Place& e, W& x) { x = stays(e) ? x * at.growth : W{0}; });
        p.each([&](const Place& e, W& x) { x *= dp.at[e.lane].of[e.i][e.j][e.e] - statistic[columns + e.column()]; });
        add_weighted_rows(of[w].keys, p, queries(step));
      });
    }
    copies.wait();
    block.sync();
    in_warps<warps>([&](int w) {
      write_rows(of[w].keys, k.from(w * 16 * m), [&](const Place&) { return Base::factor; });
      write_rows(of[w].values, v.from(w * 16 * m), [&](const Place&) { return W{1}; });
    });
    block.sync();
    unstage(block, at.packed, k, at.of_keys(dk, b, group, at.size), key, rows);
    unstage(block, at.packed, v, at.of_keys(dv, b, group, at.value_size), key, rows);
  }

 private:
  PARALLEL_DEVICE static int larger(int a, int b) { return a > b ? a : b; }
  PARALLEL_DEVICE static int smaller(int a, int b) { return a < b ? a : b; }
};

/// (q, k, v, ..., result, statistic, g): the gradients of q, k and v. Some of the batch at a time, so many as the inner
/// products have room for.
template <class T>
void attention_gradient(const Call& call) {
  using W = Wide<T>;
  Gpu& gpu = cuda::gpu(call);
  const int last = call.operands.size() - 1;
  const View& q = call.operands[0];
  const std::int64_t room = static_cast<std::int64_t>(Gpu::workspace_bytes / sizeof(W)), each = q.size[1] * q.size[2];
  if (each > room)
    throw GpuFailed("the gradient of attention on the GPU has at most " + std::to_string(room) +
                    " queries of all heads, but here there are " + std::to_string(each));
  const int batches = static_cast<int>(room / std::max<std::int64_t>(each, 1));
  with_heads<T>(call, [&]<int size, bool plain>(const Heads<T, plain>& at, std::integral_constant<int, size>) {
    AttentionBackward<T, size, plain> both{at,
                                           call.operands[last - 2].as<const T>(),
                                           call.operands[last].as<const T>(),
                                           call.operands[last - 1].as<const W>(),
                                           static_cast<W*>(gpu.workspace()),
                                           static_cast<W>(call.reals[0])};
    for (both.at.first_batch = 0; both.at.first_batch < at.batch; both.at.first_batch += batches) {
      const int now = std::min(batches, at.batch - both.at.first_batch);
      const QueryGradient<T, size, plain> by_queries{both, call.results[0].as<T>()};
      const KeyGradient<T, size, plain> by_keys{both, call.results[1].as<T>(), call.results[2].as<T>()};
      launch(gpu.stream(), by_queries.blocks(now), by_queries, by_queries.shared());
      launch(gpu.stream(), by_keys.blocks(now), by_keys, by_keys.shared());
    }
  });
}

}  // namespace parallel::internals::cuda
