// Attention head by head, some scores at a time, those of a block of queries and a block of keys: no tensor of all
// scores exists, and backward makes them again from one number a row. Softmax goes on from block to block of keys
// (FlashAttention, Dao et al. 2022).
//
// Scores stand by keys, a row has a key's for all queries of the block. So softmax takes sixteen queries at once and
// adds up nothing across a register, and of the operands of all products only the block's own queries, and backward
// their gradients, have to be transposed.
#pragma once
#include <parallel/device/cpu/product_in_cache.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/cpu/scratch.hpp>
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
  const int* const seen;                                           ///< [batch, keys], or none
  const int* const documents_of_keys;                              ///< [batch, keys], or none
  const int* const documents;                                      ///< of queries, [batch, queries]
  const Index position;                                            ///< of the first query of all ranks
  static constexpr Index at_once = account::cpu::queries_at_once;  ///< queries, whose scores of a key are a row at most
  /// Queries, and keys, whose scores are computed, or left out as none of these queries sees these keys.
  static constexpr Index strip = account::cpu::queries_alike;
  static_assert(strip == Lanes<T>::SizeAtCompileTime && at_once % strip == 0 &&
                account::cpu::most_keys % depth_in_cache == 0);
  const Index key_block;  ///< keys at a time: their scores stay in the second cache
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
        key_block(account::cpu::keys_at_once(keys)),
        dropped(dropped_below(call.reals[1])),
        growth(static_cast<T>(1 / (1 - call.reals[1]))) {
    if (dropped > 0) stream = StreamOf(call, attending.scalars(), {call.ints[3], call.ints[4], call.ints[5]}).get();
  }

  /// The first row of a head in a tensor [batch, rows, heads, elements], and the way from row to row.
  template <class U>
  Matrix<U> rows(U* data, Index b, Index row, Index all_rows, Index head, Index all_heads, Index elements) const {
    return {data + ((b * all_rows + row) * all_heads + head) * elements, all_heads * elements};
  }
  template <class U>
  Matrix<U> query_rows(U* data, Index b, Index row, Index head, Index elements) const {
    return rows(data, b, row, queries, head, heads, elements);
  }
  template <class U>
  Matrix<U> key_rows(U* data, Index b, Index first, Index group, Index elements) const {
    return rows(data, b, first, keys, group, groups, elements);
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
  /// Whether the position that a query is given has no key.
  bool stands_outside(Index row) const {
    const Index stands = position + q.at(1, row);
    return attending.positioned && (stands < 0 || stands >= k.whole[1]);
  }

  /// Elements of a row of scores of so many queries.
  static constexpr Index whole_strips(Index count) { return (count + strip - 1) / strip * strip; }
  /// A block of scores: some keys, some queries, and how many of the keys each query sees, if there is no mask.
  struct Block {
    Index first_key, keys, first_query, queries, stride;
    bool first;                        ///< of its queries
    Index sees[std::size_t{at_once}];  ///< ascending

    /// Calls body(key, keys, query) for parts of the keys, with the queries from the first on that sees one of them, or
    /// up to 15 before it.
    template <class Body>
    void by_keys(Body body) const {
      const Index by_all = sees[0] / strip * strip;
      if (by_all > 0) body(0, by_all, 0);
      Index query = 0;
      for (Index key = by_all; key < keys; key += strip) {
        while (query < queries && sees[query] <= key) ++query;
        body(key, std::min(strip, keys - key), query / strip * strip);
      }
    }
    /// Calls body(key, keys, query, queries) likewise, in the order of the keys, which begin at the same ones whatever
    /// the queries are; for the first of them also where the queries see none.
    template <class Body>
    void by_queries(Body body) const {
      Index key = 0;
      do {
        const Index some = std::min(depth_in_cache - (first_key + key) % depth_in_cache, keys - key);
        const auto own_keys = [&](Index query) { return std::clamp<Index>(sees[query] - key, 0, some); };
        const bool alike = own_keys(0) == own_keys(queries - 1);
        for (Index query = 0, n = 0; query < queries; query += n) {
          n = alike ? queries : std::min(strip, queries - query);
          if (const Index own = own_keys(query + n - 1); own > 0 || key == 0) body(key, own, query, n);
        }
        key += some;
      } while (key < keys);
    }
    /// Calls body(query, keys) for every 16 queries, with as many of the keys as by_keys has with them.
    template <class Body>
    void each_strip(Body body) const {
      for (Index query = 0; query < queries; query += strip)
        body(query, std::min(keys, whole_strips(sees[std::min(queries, query + strip) - 1])));
    }
  };
  /// Calls body for every block of the keys that some queries see, at least once. Blocks begin at the same keys
  /// whatever the queries are, so that their bits are the same, too.
  template <class Body>
  void each_block(Index b, Index row, Index count, Body body) const {
    const Range all = seen_by(b, row, count);
    Index begin = all.begin;
    do {
      const Index end = std::min((begin / key_block + 1) * key_block, all.end);
      Block part{begin, end - begin, row, count, whole_strips(count), begin == all.begin, {}};
      for (Index i = 0; i < count; ++i) part.sees[i] = std::clamp<Index>(visible(row + i + 1) - begin, 0, part.keys);
      body(part);
      begin = end;
    } while (begin < all.end);
  }
  /// The threads that compute a call of it.
  Team* team(const Call& call) const {
    return team_for(call, static_cast<double>(batch * heads * queries) * static_cast<double>(keys * size));
  }
  /// Calls body(b, head, first row, count) for every block of queries, by any thread of a team.
  template <class Body>
  void each(Team* of, Body body) const {
    const Index blocks = (queries + at_once - 1) / at_once;
    each_unit(of, batch * heads * blocks, [&](Index i) {
      const Index row = i % blocks * at_once;
      body(i / blocks / heads, i / blocks % heads, row, std::min(at_once, queries - row));
    });
  }
  /// The same, those that share keys one after the other by one thread, also where the rank has none of the keys.
  template <class Body>
  void each_by_keys(Team* of, Body body) const {
    const Index first = group_of(0), shared = heads > 0 ? group_of(heads - 1) - first + 1 : 0;
    each_unit(of, batch * shared, [&](Index i) {
      for (Index head = 0; head < heads; ++head)
        for (Index row = 0; row < queries && group_of(head) - first == i % shared; row += at_once)
          body(i / shared, head, row, std::min(at_once, queries - row));
    });
  }
  /// Rows of some queries by elements, [elements, stride], with zeros for queries that are none.
  Matrix<const T> transposed(const Matrix<const T>& rows, Index count, Index elements, T* to) const {
    const Index stride = whole_strips(count);
    transpose(rows.data, rows.stride, to, stride, count, elements);
    for (Index e = 0; e < elements && count < stride; ++e)
      std::fill(to + e * stride + count, to + (e + 1) * stride, T{0});
    return {to, stride};
  }
  /// to[keys, stride] = by * left[keys, elements] * right[elements, stride], of what sees each other.
  void multiply_pairs(const Block& of, Index elements, T by, const Matrix<const T>& left, const Matrix<const T>& right,
                      T* to) const {
    constexpr Index width = Eigen::internal::packet_traits<T>::size;  // of few queries the rest of a strip is none
    const Index columns = (of.queries + width - 1) / width * width;
    of.by_keys([&](Index key, Index n, Index query) {
      T* const rows = to + key * of.stride;
      multiply_in_cache<T>(n, columns - query, elements, by, left.from_row(key), right.from_column(query),
                           {rows + query, of.stride}, false);
      for (Index j = 0; j < n && columns < of.stride; ++j)
        std::fill(rows + j * of.stride + columns, rows + (j + 1) * of.stride, T{0});
    });
  }
  /// Scores [keys, stride]; those of keys that a query does not see are -infinity.
  void scores(T* to, const Matrix<const T>& of_queries, const Block& of, Index b, Index head) const {
    multiply_pairs(of, size, factor, key_rows(k.as<const T>(), b, of.first_key, group_of(head), size), of_queries, to);
    constexpr T none = -std::numeric_limits<T>::infinity();
    of.by_keys([&](Index key, Index n, Index query) {
      for (Index i = query; i < of.queries && of.sees[i] < key + n; ++i)
        for (Index j = std::max(key, of.sees[i]); j < key + n; ++j) to[j * of.stride + i] = none;
    });
    const auto hide = [&](auto is_hidden) {
      for (Index j = 0; j < of.keys; ++j)
        for (Index i = 0; i < of.queries; ++i)
          if (is_hidden(b * queries + of.first_query + i, b * keys + of.first_key + j)) to[j * of.stride + i] = none;
    };
    if (seen != nullptr) hide([&](Index, Index key) { return seen[key] == 0; });
    if (documents != nullptr) hide([&](Index query, Index key) { return documents[query] != documents_of_keys[key]; });
  }
  /// Drops probabilities of a block [keys, stride] that queries see, or gradients of them, by their indices in all
  /// scores [batch, heads, queries, keys].
  void drop(T* p, const Block& of, Index b, Index head) const {
    for (Index i = 0; i < of.queries && dropped > 0; ++i)
      drop(p + i, of.stride, b, head, of.first_query + i, of.first_key, of.sees[i]);
  }
  void drop(T* p, Index stride, Index b, Index head, Index row, Index begin, Index n_keys) const {
    const Index first = ((q.at(0, b) * q.whole[2] + q.offset[2] + head) * q.whole[1] + q.at(1, row)) * k.whole[1];
    for (Index key = 0, n = 0; key < n_keys; key += n) {
      n = std::min(k.run(1, begin + key), n_keys - key);
      in_blocks(first + k.at(1, begin + key), n, [&](Index i, Index within, Index count, std::uint64_t of) {
        std::uint32_t words[RandomStream::block];
        words_of_block(stream, of, words);
        for (Index j = key + i; j < key + i + count; ++j)
          p[j * stride] = words[within + j - key - i] < dropped ? T{0} : p[j * stride] * growth;
      });
    }
  }
};

/// Softmax of 16 queries goes on over more keys: scores [keys, stride] become exponentials of their differences from
/// the `largest` so far, which are added to `sums`. `shares` are what is to be left of all before.
template <class T>
[[gnu::noinline, gnu::flatten]] void go_on(T* scores, Index keys, Index stride, T* largest, T* sums, T* shares) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  const auto score = [=](Index key) { return lanes(static_cast<const T*>(scores + key * stride)); };
  const Lanes<T> before = lanes(static_cast<const T*>(largest));
  Lanes<T> here = before;
  for (Index j = 0; j < keys; ++j) here = here.max(score(j));
  const Lanes<T> subtracted = (here == none).select(Lanes<T>::Zero(), here), share = exponential(before - subtracted);
  Lanes<T> sum = Lanes<T>::Zero();
  for (Index j = 0; j < keys; ++j) {
    const Lanes<T> y = exponential(score(j) - subtracted);
    lanes(scores + j * stride) = y;
    sum += y;
  }
  lanes(largest) = here;
  lanes(shares) = share;
  lanes(sums) = lanes(static_cast<const T*>(sums)) * share + sum;
}
/// Scores [keys, stride] of 16 queries become probabilities, by the logarithms of the sums of their exponentials.
template <class T>
[[gnu::noinline, gnu::flatten]] void probabilities(T* scores, Index keys, Index stride, const T* statistic) {
  const Lanes<T> subtracted = lanes(statistic);
  for (Index j = 0; j < keys; ++j, scores += stride)
    lanes(scores) = exponential(lanes(static_cast<const T*>(scores)) - subtracted);
}
/// Gradients [keys, stride] of probabilities become those of scores.
template <class T>
[[gnu::noinline, gnu::flatten]] void score_gradients(T* g, const T* p, Index keys, Index stride, const T* inner) {
  const Lanes<T> subtracted = lanes(inner);
  for (Index j = 0; j < keys; ++j, g += stride, p += stride)
    lanes(g) = lanes(p) * (lanes(static_cast<const T*>(g)) - subtracted);
}

/// (q, k, v, ...): the result and, per row, the logarithm of the sum of exponentials of its scores; of a row that sees
/// no key, the lowest number.
template <class T>
void attention(const Call& call) {
  using Block = typename Heads<T>::Block;
  constexpr Index at_once = Heads<T>::at_once;
  const Heads<T> at(call);
  const T *q = at.q.template as<const T>(), *v = at.v.template as<const T>();
  T *out = call.results[0].as<T>(), *statistic = call.results[1].as<T>();
  at.each(at.team(call), [&](Index b, Index head, Index row, Index count) {
    T* const p = scratch<Purpose::scores, T>(static_cast<std::size_t>(at_once * (at.key_block + at.size)));
    const Matrix<T> to = at.query_rows(out, b, row, head, at.value_size);
    const Matrix<const T> queries =
        at.transposed(at.query_rows(q, b, row, head, at.size), count, at.size, p + at.key_block * at_once);
    alignas(64) T largest[std::size_t{at_once}], sums[std::size_t{at_once}], shares[std::size_t{at_once}];  // so far
    std::fill_n(largest, at_once, -std::numeric_limits<T>::infinity());
    std::fill_n(sums, at_once, T{0});
    at.each_block(b, row, count, [&](const Block& of) {
      at.scores(p, queries, of, b, head);
      of.each_strip([&](Index query, Index keys) {
        go_on(p + query, keys, of.stride, largest + query, sums + query, shares + query);
      });
      for (Index i = 0; i < count && !of.first; ++i)
        if (shares[i] != 1) multiply_by(to.data + i * to.stride, shares[i], at.value_size);
      at.drop(p, of, b, head);
      const Matrix<const T> values = at.key_rows(v, b, of.first_key, at.group_of(head), at.value_size);
      of.by_queries([&](Index key, Index keys, Index query, Index n) {
        multiply_in_cache<T>(n, at.value_size, keys, 1, {p + key * of.stride + query, of.stride, true},
                             values.from_row(key), to.from_row(query), !of.first || key > 0);
      });
    });
    for (Index i = 0; i < count; ++i) {
      T* const own = to.data + i * to.stride;
      statistic[(b * at.queries + row + i) * at.heads + head] =
          sums[i] == 0 ? std::numeric_limits<T>::lowest() : largest[i] + std::log(sums[i]);
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
  using Block = typename Heads<T>::Block;
  constexpr Index at_once = Heads<T>::at_once;
  const Heads<T> at(call);
  const int last = call.operands.size() - 1;
  const T *q = at.q.template as<const T>(), *k = at.k.template as<const T>(), *v = at.v.template as<const T>(),
          *out = call.operands[last - 2].as<const T>(), *statistic = call.operands[last - 1].as<const T>(),
          *g = call.operands[last].as<const T>();
  T *dq = call.results[0].as<T>(), *dk = call.results[1].as<T>(), *dv = call.results[2].as<T>();
  set(dk, call.results[1].elements(), T{0});
  set(dv, call.results[2].elements(), T{0});
  at.each_by_keys(at.team(call), [&](Index b, Index head, Index row, Index count) {
    T* const p =
        scratch<Purpose::scores, T>(static_cast<std::size_t>(at_once * (2 * at.key_block + at.size + at.value_size)));
    T *const ds = p + at.key_block * at_once, *const turned = ds + at.key_block * at_once;
    const Matrix<const T> own = at.query_rows(q, b, row, head, at.size),
                          cotangent = at.query_rows(g, b, row, head, at.value_size),
                          result = at.query_rows(out, b, row, head, at.value_size),
                          queries = at.transposed(own, count, at.size, turned),
                          cotangents = at.transposed(cotangent, count, at.value_size, turned + at.size * at_once);
    alignas(64) T inner[std::size_t{at_once}]{}, own_statistic[std::size_t{at_once}]{};
    for (Index i = 0; i < count; ++i) {
      inner[i] = inner_product(cotangent.data + i * cotangent.stride, result.data + i * result.stride, at.value_size);
      own_statistic[i] = statistic[(b * at.queries + row + i) * at.heads + head];
    }
    at.each_block(b, row, count, [&](const Block& of) {
      const auto keys_of = [&](auto* data, Index key, Index elements) {
        return at.key_rows(data, b, of.first_key + key, at.group_of(head), elements);
      };
      at.scores(p, queries, of, b, head);
      of.each_strip([&](Index query, Index keys) { probabilities(p + query, keys, of.stride, own_statistic + query); });
      T* kept = p;  // probabilities as they met the values
      if (at.dropped > 0) {
        kept = ds;
        std::copy_n(p, of.keys * of.stride, ds);
        at.drop(ds, of, b, head);
      }
      of.by_keys([&](Index key, Index keys, Index query) {
        multiply_in_cache<T>(keys, at.value_size, count - query, 1, {kept + key * of.stride + query, of.stride},
                             cotangent.from_row(query), keys_of(dv, key, at.value_size), true);
      });
      at.multiply_pairs(of, at.value_size, 1, keys_of(v, 0, at.value_size), cotangents, ds);
      at.drop(ds, of, b, head);
      of.each_strip(
          [&](Index query, Index keys) { score_gradients(ds + query, p + query, keys, of.stride, inner + query); });
      of.by_queries([&](Index key, Index keys, Index query, Index n) {
        multiply_in_cache<T>(n, at.size, keys, at.factor, {ds + key * of.stride + query, of.stride, true},
                             keys_of(k, key, at.size), at.query_rows(dq, b, row + query, head, at.size),
                             !of.first || key > 0);
      });
      of.by_keys([&](Index key, Index keys, Index query) {
        multiply_in_cache<T>(keys, at.size, count - query, at.factor, {ds + key * of.stride + query, of.stride},
                             own.from_row(query), keys_of(dk, key, at.size), true);
      });
    });
  });
}

}  // namespace parallel::internals::cpu
