// Attention head by head, some scores at a time, those of a block of queries and a block of keys: no tensor of all
// scores exists, and backward makes them again from one number a row. Softmax goes on from block to block of keys
// (FlashAttention, Dao et al. 2022).
#pragma once
#include <parallel/device/cpu/product.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/cpu/team.hpp>
#include <parallel/operation/attention.hpp>

namespace parallel::internals::cpu {

/// What attention and its gradient have in common: where the rows of a head lie, and which keys a block of queries
/// sees.
template <class T>
struct Heads {
  const View &q, &k, &v;
  const operation::Attending attending;
  const Index batch, queries, keys, heads, groups, size, value_size;
  const Index group_size;  ///< how many heads, counted over all ranks, share keys
  const T factor;
  const int* const seen;               ///< [batch, keys], or none
  const int* const documents_of_keys;  ///< [batch, keys], or none
  const int* const documents;          ///< of queries, [batch, queries]
  const Index position;                ///< of the first query of all ranks
  static constexpr Index most_rows = account::cpu::most_queries;
  const Index block;      ///< queries at a time
  const Index key_block;  ///< and keys: their scores stay in the second cache
  const Index room;       ///< elements of a row of scores: whole cache lines, so that each begins at one
  RandomStream stream{};
  const std::uint64_t dropped;
  const T growth;

  explicit Heads(const Call& call)
      : q(call.operands[0]),
        k(call.operands[1]),
        v(call.operands[2]),
        attending(call.ints),
        batch(q.size[0]),
        queries(q.size[1]),
        keys(k.size[1]),
        heads(q.size[2]),
        groups(k.size[2]),
        size(q.size[3]),
        value_size(v.size[3]),
        group_size(q.whole[2] / k.whole[2]),
        factor(static_cast<T>(call.reals[0])),
        seen(attending.masked ? call.operands[3].as<const int>() : nullptr),
        documents_of_keys(attending.packed ? call.operands[3].as<const int>() : nullptr),
        documents(attending.packed ? call.operands[4].as<const int>() : nullptr),
        position(attending.positioned ? *call.operands[attending.scalars() - 1].as<const int>() : 0),
        block(account::cpu::queries_at_once(keys)),
        key_block(account::cpu::keys_at_once(keys)),
        room(account::cpu::room_of_scores(key_block)),
        dropped(dropped_below(call.reals[1])),
        growth(static_cast<T>(1 / (1 - call.reals[1]))) {
    if (dropped > 0) stream = StreamOf(call, attending.scalars(), {call.ints[3], call.ints[4], call.ints[5]}).get();
  }

  /// The first row of a head in a tensor [batch, rows, heads, elements], and the way from row to row.
  template <class U>
  Matrix<U> rows(U* data, Index b, Index row, Index all_rows, Index head, Index all_heads, Index elements,
                 bool transposed = false) const {
    return {data + ((b * all_rows + row) * all_heads + head) * elements, all_heads * elements, transposed};
  }
  template <class U>
  Matrix<U> query_rows(U* data, Index b, Index row, Index head, Index elements) const {
    return rows(data, b, row, queries, head, heads, elements);
  }
  template <class U>
  Matrix<U> key_rows(U* data, Index b, Index first, Index group, Index elements, bool transposed = false) const {
    return rows(data, b, first, keys, group, groups, elements, transposed);
  }
  Index group_of(Index head) const { return (q.offset[2] + head) / group_size - k.offset[2]; }
  /// How many of the rank's keys the query before `row` sees, if there is no mask.
  Index visible(Index row) const { return attending.causal ? k.below(1, position + q.at(1, row - 1) + 1) : keys; }

  /// The keys that some of a block of queries see: the first, and where they end.
  struct Range {
    Index begin = 0, end = 0;
    Index size() const { return end - begin; }
  };
  Range seen_by(Index b, Index row, Index count) const {
    Range range{0, visible(row + count)};
    if (documents == nullptr) return range;
    const auto own = std::minmax_element(documents + b * queries + row, documents + b * queries + row + count);
    const int* const of = documents_of_keys + b * keys;
    const auto is_other = [&](Index key) { return of[key] < *own.first || of[key] > *own.second; };
    while (range.size() > 0 && is_other(range.end - 1)) --range.end;
    while (range.size() > 0 && is_other(range.begin)) ++range.begin;
    return range;
  }
  /// Of these keys how many the query before `row` sees, if there is no mask.
  Index visible(const Range& range, Index row) const {
    return std::clamp<Index>(visible(row) - range.begin, 0, range.size());
  }

  /// Whether the position that a query is given has no key.
  bool stands_outside(Index row) const {
    const Index stands = position + q.at(1, row);
    return attending.positioned && (stands < 0 || stands >= k.whole[1]);
  }

  /// Calls body(keys, whether they are the first) for every block of the keys that a block of queries sees, at least
  /// once. Blocks begin at the same keys whatever the queries are, so that their bits are the same, too.
  template <class Body>
  void each_block(const Range& all, Body body) const {
    Range part = all;
    do {
      part.end = std::min((part.begin / key_block + 1) * key_block, all.end);
      body(part, part.begin == all.begin);
      part.begin = part.end;
    } while (part.begin < all.end);
  }
  /// The threads that compute a call of it.
  Team* team(const Call& call) const {
    return team_for(call, static_cast<double>(batch * heads * queries) * static_cast<double>(keys * size));
  }
  /// Calls body(b, head, first row, count) for every block of queries, by any thread of a team.
  template <class Body>
  void each(Team* of, Body body) const {
    const Index blocks = (queries + block - 1) / block;
    each_unit(of, batch * heads * blocks, [&](Index i) {
      const Index row = i % blocks * block;
      body(i / blocks / heads, i / blocks % heads, row, std::min(block, queries - row));
    });
  }
  /// The same, those that share keys one after the other by one thread, also where the rank has none of the keys.
  template <class Body>
  void each_by_keys(Team* of, Body body) const {
    const Index first = group_of(0), shared = heads > 0 ? group_of(heads - 1) - first + 1 : 0;
    each_unit(of, batch * shared, [&](Index i) {
      for (Index head = 0; head < heads; ++head)
        for (Index row = 0; row < queries && group_of(head) - first == i % shared; row += block)
          body(i / shared, head, row, std::min(block, queries - row));
    });
  }
  /// Scores of a block of queries; those of keys that the mask leaves out, or of other documents, are -infinity.
  Matrix<const T> scores(T* to, Index b, Index head, Index row, Index count, const Range& range) const {
    multiply<T>(count, range.size(), size, factor, query_rows(q.as<const T>(), b, row, head, size),
                key_rows(k.as<const T>(), b, range.begin, group_of(head), size, true), {to, room});
    const auto hide = [&](auto is_hidden) {
      for (Index i = 0; i < count; ++i)
        for (Index j = 0; j < range.size(); ++j)
          if (is_hidden(b * queries + row + i, b * keys + range.begin + j))
            to[i * room + j] = -std::numeric_limits<T>::infinity();
    };
    if (seen != nullptr) hide([&](Index, Index key) { return seen[key] == 0; });
    if (documents != nullptr) hide([&](Index query, Index key) { return documents[query] != documents_of_keys[key]; });
    return {to, room};
  }
  /// row = exp(row - subtracted) for visible keys, 0 for the others.
  void exponentials(T* row, T subtracted, Index visible_keys, Index all) const {
    cpu::exponentials(row, subtracted, row, visible_keys);
    std::fill(row + visible_keys, row + all, T{0});
  }
  /// Drops probabilities of a query for some keys from one on, or gradients of them, by their indices in all scores
  /// [batch, heads, queries, keys].
  void drop(T* p, Index b, Index head, Index row, Index begin, Index n_keys) const {
    if (dropped == 0) return;
    const Index first = ((q.at(0, b) * q.whole[2] + q.offset[2] + head) * q.whole[1] + q.at(1, row)) * k.whole[1];
    for (Index key = 0, n = 0; key < n_keys; key += n) {
      n = std::min(k.run(1, begin + key), n_keys - key);
      in_blocks(first + k.at(1, begin + key), n, [&](Index i, Index within, Index count, std::uint64_t of) {
        std::uint32_t words[RandomStream::block];
        words_of_block(stream, of, words);
        for (Index j = key + i; j < key + i + count; ++j)
          p[j] = words[within + j - key - i] < dropped ? T{0} : p[j] * growth;
      });
    }
  }
};

/// (q, k, v, ...): the result and, per row, the logarithm of the sum of exponentials of its scores; of a row that sees
/// no key, the lowest number.
template <class T>
void attention(const Call& call) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  const Heads<T> at(call);
  T *out = call.results[0].as<T>(), *statistic = call.results[1].as<T>();
  at.each(at.team(call), [&](Index b, Index head, Index row, Index count) {
    T* const p = scratch<Purpose::scores, T>(static_cast<std::size_t>(at.block * at.room));
    const Matrix<T> to = at.query_rows(out, b, row, head, at.value_size);
    T largest[Heads<T>::most_rows], sums[Heads<T>::most_rows];  // so far
    std::fill_n(largest, count, none);
    std::fill_n(sums, count, T{0});
    at.each_block(at.seen_by(b, row, count), [&](const auto& range, bool first) {
      const Matrix<const T> scores = at.scores(p, b, head, row, count, range);
      for (Index i = 0; i < count; ++i) {
        T* const own = p + i * at.room;
        const Index visible = at.visible(range, row + i + 1);
        const T before = largest[i], here = largest_of(own, visible);
        if (here > before) {
          largest[i] = here;
          const T share = std::exp(before - here);
          sums[i] *= share;
          if (!first) multiply_by(to.data + i * to.stride, share, at.value_size);
        }
        at.exponentials(own, largest[i] == none ? T{0} : largest[i], visible, range.size());
        sums[i] += sum_of(own, visible);
        at.drop(own, b, head, row + i, range.begin, visible);
      }
      multiply<T>(count, at.value_size, range.size(), 1, scores,
                  at.key_rows(at.v.template as<const T>(), b, range.begin, at.group_of(head), at.value_size), to,
                  !first);
    });
    for (Index i = 0; i < count; ++i) {
      T* const own = to.data + i * to.stride;
      statistic[(b * at.queries + row + i) * at.heads + head] =
          sums[i] > 0 ? largest[i] + std::log(sums[i]) : std::numeric_limits<T>::lowest();
      if (at.stands_outside(row + i))
        std::fill_n(own, at.value_size, std::numeric_limits<T>::quiet_NaN());
      else
        multiply_by(own, sums[i] > 0 ? 1 / sums[i] : T{0}, at.value_size);
    }
  });
}

/// (result, statistic, result, statistic): each row by its share of the sum of exponentials, and the logarithm of that.
template <class T>
void join_attention(const Call& call) {
  const Index rows = call.results[1].elements(), size = call.results[0].elements() / rows;
  const T *a = call.operands[0].as<const T>(), *of_a = call.operands[1].as<const T>(),
          *b = call.operands[2].as<const T>(), *of_b = call.operands[3].as<const T>();
  T *out = call.results[0].as<T>(), *statistic = call.results[1].as<T>();
  for (Index r = 0; r < rows; ++r, a += size, b += size, out += size) {
    const T largest = std::max(of_a[r], of_b[r]), share_a = std::exp(of_a[r] - largest),
            share_b = std::exp(of_b[r] - largest), sum = share_a + share_b;
    statistic[r] = largest + std::log(sum);
    by_lanes(
        size,
        [=](T* to, const T* x, const T* y) { lanes(to) = lanes(x) * (share_a / sum) + lanes(y) * (share_b / sum); },
        out, a, b);
  }
}

/// (q, k, v, ..., result, statistic, g): the gradients of q, k and v.
template <class T>
void attention_gradient(const Call& call) {
  const Heads<T> at(call);
  const int last = call.operands.size() - 1;
  const T *out = call.operands[last - 2].as<const T>(), *statistic = call.operands[last - 1].as<const T>(),
          *g = call.operands[last].as<const T>();
  T *dq = call.results[0].as<T>(), *dk = call.results[1].as<T>(), *dv = call.results[2].as<T>();
  set(dk, call.results[1].elements(), T{0});
  set(dv, call.results[2].elements(), T{0});
  at.each_by_keys(at.team(call), [&](Index b, Index head, Index row, Index count) {
    T* const p = scratch<Purpose::scores, T>(static_cast<std::size_t>(2 * at.block * at.room));
    T* const ds = p + at.block * at.room;
    const Index group = at.group_of(head);
    const auto cotangent = at.query_rows(g, b, row, head, at.value_size),
               result = at.query_rows(out, b, row, head, at.value_size);
    T inner[Heads<T>::most_rows];
    for (Index i = 0; i < count; ++i)
      inner[i] = inner_product(cotangent.data + i * cotangent.stride, result.data + i * result.stride, at.value_size);
    at.each_block(at.seen_by(b, row, count), [&](const auto& range, bool first) {
      const Index all = range.size();
      at.scores(p, b, head, row, count, range);
      for (Index i = 0; i < count; ++i)
        at.exponentials(p + i * at.room, statistic[(b * at.queries + row + i) * at.heads + head],
                        at.visible(range, row + i + 1), all);
      T* kept = p;  // probabilities as they met the values
      if (at.dropped > 0) {
        kept = ds;
        for (Index i = 0; i < count; ++i) {
          std::copy_n(p + i * at.room, all, ds + i * at.room);
          at.drop(ds + i * at.room, b, head, row + i, range.begin, all);
        }
      }
      multiply<T>(all, at.value_size, count, 1, {kept, at.room, true}, cotangent,
                  at.key_rows(dv, b, range.begin, group, at.value_size), true);
      multiply<T>(count, all, at.value_size, 1, cotangent,
                  at.key_rows(at.v.template as<const T>(), b, range.begin, group, at.value_size, true), {ds, at.room});
      for (Index i = 0; i < count; ++i) {
        at.drop(ds + i * at.room, b, head, row + i, range.begin, all);
        probability_gradient(ds + i * at.room, p + i * at.room, ds + i * at.room, inner[i], all);
      }
      multiply<T>(count, at.size, all, at.factor, {ds, at.room},
                  at.key_rows(at.k.template as<const T>(), b, range.begin, group, at.size),
                  at.query_rows(dq, b, row, head, at.size), !first);
      multiply<T>(all, at.size, count, at.factor, {ds, at.room, true},
                  at.query_rows(at.q.template as<const T>(), b, row, head, at.size),
                  at.key_rows(dk, b, range.begin, group, at.size), true);
    });
  });
}

}  // namespace parallel::internals::cpu
