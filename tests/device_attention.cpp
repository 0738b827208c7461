// Attention against its definition: what is masked, dropped, generated from a cache, joined of parts of the keys; tiles
// of a GPU's kernels, in bf16 and f16 too.
#include <array>

#include <parallel/device/stream.hpp>
#include <parallel/operation/attention.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

template <class T>
Numbers rounded(Numbers x) {
  for (double& value : x.values) value = number(stored<T>(value));
  return x;
}

/// softmax(scale q k^T) v, and what its gradients are.
struct Definition {
  Numbers q, k, v, g;
  bool causal = false, masked = false, packed = false, positioned = false;
  Numbers seen{}, documents{};  ///< of keys; of keys, and of queries, as many
  std::int64_t position = 0;
  double dropped = 0;
  double nothing_seen = 0;  ///< the logarithm of no sum
  static constexpr double scale = 0.3;
  Numbers out{}, logs{}, dq{}, dk{}, dv{};

  std::int64_t group_of(std::int64_t head) const { return head / (q.sizes[2] / k.sizes[2]); }
  bool sees(const Sizes& i, std::int64_t key) const {
    return (!causal || key <= i[1] + position) && (!masked || seen({i[0], key}) != 0) &&
           (!packed || documents({i[0], key}) == documents({i[0], i[1]}));
  }
  /// What a probability is multiplied by.
  double kept(const Sizes& i, std::int64_t key) const {
    const double scalars[]{7, 5};
    const auto index = static_cast<std::uint64_t>(((i[0] * q.sizes[2] + i[2]) * q.sizes[1] + i[1]) * k.sizes[1] + key);
    if (dropped == 0) return 1;
    return RandomStream::of({0, 1, 3}, scalars, 2, 4).word(index) < dropped_below(dropped) ? 0 : 1 / (1 - dropped);
  }
  double inner(const Numbers& x, const Sizes& i, const Numbers& y, std::int64_t key) const {
    double sum = 0;
    for (std::int64_t d = 0; d < x.sizes[3]; ++d) sum += x({i[0], i[1], i[2], d}) * y({i[0], key, group_of(i[2]), d});
    return sum;
  }
  void compute() {
    const Sizes rows{q.sizes[0], q.sizes[1], q.sizes[2]};
    logs = Numbers(rows);
    out = Numbers(g.sizes);
    dq = Numbers(q.sizes);
    dk = Numbers(k.sizes);
    dv = Numbers(v.sizes);
    each_index(rows, [&](const Sizes& i) {
      const std::int64_t keys = k.sizes[1], group = group_of(i[2]);
      const auto at = [&](std::int64_t d) { return Sizes{i[0], i[1], i[2], d}; };
      std::vector<double> p(static_cast<std::size_t>(keys));
      double sum = 0, within = 0;
      for (std::int64_t j = 0; j < keys; ++j)
        sum += p[static_cast<std::size_t>(j)] = sees(i, j) ? std::exp(scale * inner(q, i, k, j)) : 0;
      logs(i) = sum == 0 ? nothing_seen : std::log(sum);
      for (std::int64_t j = 0; j < keys; ++j) {
        const double own = p[static_cast<std::size_t>(j)] /= sum == 0 ? 1 : sum;
        for (std::int64_t d = 0; d < v.sizes[3]; ++d) out(at(d)) += own * kept(i, j) * v({i[0], j, group, d});
      }
      if (positioned && i[1] + position >= keys)
        for (std::int64_t d = 0; d < v.sizes[3]; ++d) out(at(d)) = std::numeric_limits<double>::quiet_NaN();
      for (std::int64_t d = 0; d < v.sizes[3]; ++d) within += g(at(d)) * out(at(d));
      for (std::int64_t j = 0; j < keys; ++j) {
        const double own = p[static_cast<std::size_t>(j)], stays = kept(i, j),
                     ds = scale * own * (stays * inner(g, i, v, j) - within);
        for (std::int64_t d = 0; d < v.sizes[3]; ++d) dv({i[0], j, group, d}) += own * stays * g(at(d));
        for (std::int64_t d = 0; d < q.sizes[3]; ++d) {
          dq(at(d)) += ds * k({i[0], j, group, d});
          dk({i[0], j, group, d}) += ds * q(at(d));
        }
      }
    });
  }

  template <class T>
  void prepare(Run<T>& run, const Box& part, const Box& keys, const Box& values) const {
    run.operand(q, part).operand(k, keys).operand(v, values);
    if (masked) run.integers(seen, {{part.offset[0], keys.offset[1]}, {part.size[0], keys.size[1]}});
    if (packed) {
      run.integers(documents, {{part.offset[0], keys.offset[1]}, {part.size[0], keys.size[1]}});
      run.integers(documents, {{part.offset[0], part.offset[1]}, {part.size[0], part.size[1]}});
    }
    if (positioned) run.integers(Numbers(Sizes{}, static_cast<double>(position)));
    if (dropped > 0) run.scalars({7, 5});
    const std::int64_t sees = packed ? 2 : masked ? 1 : 0;
    run.ints(dropped > 0 ? Ints{causal, sees, positioned, 0, 1, 3} : Ints{causal, sees, positioned})
        .reals(scale, dropped)
        .within(2, 4);
  }
  void check_logs(Numbers found, Numbers wanted, double relative) const {
    each_index(wanted.sizes, [&](const Sizes& i) {
      if (wanted(i) != nothing_seen) return;
      CHECK(found(i) == nothing_seen);
      found(i) = wanted(i) = 0;
    });
    check_near(found, wanted, relative);
  }
  /// Attends to a part of the keys after the other, and joins that.
  template <class T>
  void check_joined(int parts, double relative) const {
    using Statistic = std::conditional_t<Half<T>, float, T>;
    const Box queries = all_of(q.sizes), rows = all_of(logs.sizes), results = all_of(out.sizes);
    const std::vector<Box> keys = split(k.sizes, 1, parts), values = split(v.sizes, 1, parts);
    Numbers joined, statistic, found_q(dq.sizes);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Run<T> own, join, backward;
      prepare(own, queries, keys[i], values[i]);
      own.result(out.sizes, results).template result<Statistic>(logs.sizes, rows).run(operation::attention);
      if (i == 0) {
        joined = own.get(0);
        statistic = own.get(1);
      } else {
        join.operand(joined, results).template operand<Statistic>(statistic, rows).operand(own.get(0), results);
        join.template operand<Statistic>(own.get(1), rows);
        join.result(out.sizes, results).template result<Statistic>(logs.sizes, rows).run(operation::join_attention);
        joined = join.get(0);
        statistic = join.get(1);
      }
      prepare(backward, queries, keys[i], values[i]);
      backward.operand(rounded<T>(out), results).template operand<Statistic>(logs, rows).operand(g, results);
      backward.result(dq.sizes, queries)
          .result(dk.sizes, keys[i])
          .result(dv.sizes, values[i])
          .run(operation::attention_derivative);
      for (std::size_t j = 0; j < found_q.values.size(); ++j) found_q.values[j] += backward.get(0).values[j];
      check_near(backward.get(1), part_of(dk, keys[i]), 2 * relative);
      check_near(backward.get(2), part_of(dv, values[i]), 2 * relative);
    }
    check_near(joined, out, 2 * relative);
    check_logs(statistic, logs, relative);
    check_near(found_q, dq, 2 * relative);
  }
  /// Computes the parts of q, and what they give to k and v.
  template <class T>
  void check(const std::vector<Box>& parts, double relative, bool gradient = true) const {
    Numbers found_q(dq.sizes), found_k(dk.sizes), found_v(dv.sizes);
    for (const Box& part : parts) {
      const auto of = [&](const Numbers& x) {  // all keys of the part's batch
        return Box{{part.offset[0], 0, 0, 0}, {part.size[0], x.sizes[1], x.sizes[2], x.sizes[3]}};
      };
      const Box rows{{part.offset[0], part.offset[1], part.offset[2]}, {part.size[0], part.size[1], part.size[2]}};
      const Box results{{part.offset[0], part.offset[1], part.offset[2], 0},
                        {part.size[0], part.size[1], part.size[2], v.sizes[3]}};
      Run<T> forward, backward;
      prepare(forward, part, of(k), of(v));
      using Statistic = std::conditional_t<Half<T>, float, T>;
      forward.result(out.sizes, results).template result<Statistic>(logs.sizes, rows).run(operation::attention);
      check_near(forward.get(0), part_of(out, results), relative);
      check_logs(forward.get(1), part_of(logs, rows), relative);
      if (!gradient) continue;
      prepare(backward, part, of(k), of(v));
      backward.operand(rounded<T>(out), results).template operand<Statistic>(logs, rows).operand(g, results);
      backward.result(dq.sizes, part)
          .result(dk.sizes, of(k))
          .result(dv.sizes, of(v))
          .run(operation::attention_derivative);
      const auto add = [](Numbers& whole, const Numbers& term, const Box& box) {
        each_index(term.sizes, [&](const Sizes& i) {
          Sizes at = i;
          for (std::size_t d = 0; d < i.size(); ++d) at[d] += box.offset[d];
          whole(at) += term(i);
        });
      };
      add(found_q, backward.get(0), part);
      add(found_k, backward.get(1), of(k));
      add(found_v, backward.get(2), of(v));
    }
    if (!gradient) return;
    check_near(found_q, dq, 2 * relative);
    check_near(found_k, dk, 2 * relative);
    check_near(found_v, dv, 2 * relative);
  }
};
struct Extents {
  std::int64_t batch, queries, keys, heads, groups, size, value_size;
};
template <class T>
Definition definition(const Extents& c) {
  Definition d;
  d.nothing_seen = static_cast<double>(std::numeric_limits<std::conditional_t<Half<T>, float, T>>::lowest());
  d.q = rounded<T>(normal_numbers({c.batch, c.queries, c.heads, c.size}, 1));
  d.k = rounded<T>(normal_numbers({c.batch, c.keys, c.groups, c.size}, 2));
  d.v = rounded<T>(normal_numbers({c.batch, c.keys, c.groups, c.value_size}, 3));
  d.g = rounded<T>(normal_numbers({c.batch, c.queries, c.heads, c.value_size}, 4));
  return d;
}
template <class T>
constexpr double relative = 8 * tolerance<T>;

}  // namespace

#if defined(PARALLEL_TEST_CUDA)
#define ELEMENTS float, double, bfloat16, float16
#else
#define ELEMENTS float, double
#endif

TEST_CASE_TEMPLATE("attention of heads of all sizes, over several tiles", T, ELEMENTS) {
  for (const Extents& c : {Extents{1, 70, 140, 1, 1, 64, 64}, Extents{1, 150, 70, 1, 1, 64, 48},
                           Extents{2, 33, 70, 1, 1, 24, 80}, Extents{1, 40, 40, 1, 1, 256, 136}})
    for (const bool causal : {false, true}) {
      Definition d = definition<T>(c);
      d.causal = causal;
      d.compute();
      d.template check<T>({all_of(d.q.sizes)}, relative<T>);
    }
}
TEST_CASE_TEMPLATE("attention of grouped queries, of parts of queries, heads and batch", T, ELEMENTS) {
  for (const bool causal : {false, true}) {
    Definition d = definition<T>({2, 75, 75, 6, 2, 16, 8});
    d.causal = causal;
    d.compute();
    for (const int dim : {0, 1}) d.template check<T>(split(d.q.sizes, dim, 2), relative<T>);
    for (const int parts : {1, 2, 4}) d.template check<T>(split(d.q.sizes, 2, parts), relative<T>);
  }
}
TEST_CASE_TEMPLATE("a query sees what a mask leaves of the keys, and gives zeros where that is none", T, ELEMENTS) {
  for (const bool causal : {false, true}) {
    Definition d = definition<T>({3, 20, 70, 2, 1, 16, 16});
    d.masked = true;
    d.causal = causal;
    d.seen = whole_numbers({3, 70}, 5, 2);
    for (std::int64_t j = 0; j < 70; ++j) d.seen({1, j}) = 0;
    if (causal) d.seen({2, 0}) = 0;
    d.compute();
    REQUIRE(d.out({1, 3, 1, 2}) == 0);
    for (const int dim : {0, 1}) d.template check<T>(split(d.q.sizes, dim, 2), relative<T>);
  }
}
TEST_CASE_TEMPLATE("a query sees the keys of its own document", T, ELEMENTS) {
  for (const bool causal : {false, true})
    for (const double dropped : {0.0, 0.3})
      for (const int length : {1, 7, 33}) {
        Definition d = definition<T>({2, 70, 70, 2, 1, 16, 24});
        d.packed = true;
        d.causal = causal;
        d.dropped = dropped;
        d.documents = whole_numbers({2, 70}, 6, 3);  // in any order
        for (std::int64_t j = 0; j < 70; ++j) d.documents({1, j}) = static_cast<double>((j + 2) / length + 5);
        d.compute();
        for (const int dim : {0, 1, 2}) d.template check<T>(split(d.q.sizes, dim, 2), relative<T>);
        d.template check_joined<T>(3, relative<T>);
      }
}
TEST_CASE_TEMPLATE("softmax goes on over more keys than are scored at once, whatever some of them are", T, ELEMENTS) {
  enum { all, masked, packed };
  for (const int sees : {all, masked, packed})
    for (const bool causal : {false, true})
      for (const double dropped : {0.0, 0.3}) {
        Definition d = definition<T>({2, 67, 450, 1, 1, 4, 4});
        d.causal = d.positioned = causal;
        d.position = 380;
        d.dropped = dropped;
        d.masked = sees == masked;
        d.packed = sees == packed;
        each_index(d.k.sizes, [&](const Sizes& i) { d.k(i) *= (1 + static_cast<double>(i[1]) / 100) / 2; });
        d.k = rounded<T>(d.k);
        d.seen = Numbers({2, 450});  // of the first some of the last block alone, of the second some of the first
        for (std::int64_t j = 0; j < 450; ++j) d.seen({j < 400 ? 1 : 0, j}) = j > 370 && j % 2 == 0;
        d.documents = whole_numbers({2, 450}, 6, 2);  // of queries, the first 67
        for (std::int64_t j = 67; j < 440; ++j) d.documents({0, j}) = 5;
        d.compute();
        for (const int dim : {0, 1}) d.template check<T>(split(d.q.sizes, dim, 2), relative<T>);
        d.template check_joined<T>(2, relative<T>);
      }
}
#if !defined(PARALLEL_TEST_CUDA)
TEST_CASE_TEMPLATE("a query's bits do not depend on the queries beside it", T, ELEMENTS) {
  for (const bool causal : {false, true})
    for (const bool packed : {false, true})
      for (const int parts : {3, 9}) {
        Definition d = definition<T>({1, 90, 400, 2, 1, 12, 20});
        d.causal = d.positioned = causal;
        d.position = 305;
        d.packed = packed;
        d.dropped = 0.3;
        d.documents = Numbers({1, 400});
        for (std::int64_t j = 0; j < 400; ++j) d.documents({0, j}) = static_cast<double>(j % 90 / 40);
        d.compute();
        const auto computed = [&](const Box& part) {
          const Box rows{{0, part.offset[1], 0}, {1, part.size[1], 2}},
              results{{0, part.offset[1], 0, 0}, {1, part.size[1], 2, 20}};
          Run<T> forward, backward;
          d.prepare(forward, part, all_of(d.k.sizes), all_of(d.v.sizes));
          forward.result(d.out.sizes, results).template result<T>(d.logs.sizes, rows).run(operation::attention);
          d.prepare(backward, part, all_of(d.k.sizes), all_of(d.v.sizes));
          backward.operand(rounded<T>(d.out), results).template operand<T>(d.logs, rows).operand(d.g, results);
          backward.result(d.dq.sizes, part).result(d.dk.sizes).result(d.dv.sizes).run(operation::attention_derivative);
          return std::array{forward.get(0), forward.get(1), backward.get(0)};
        };
        const std::array whole = computed(all_of(d.q.sizes));
        for (const Box& part : split(d.q.sizes, 1, parts)) {
          const std::array some = computed(part);
          for (std::size_t r = 0; r < some.size(); ++r) {
            Box box{Sizes(some[r].sizes.size(), 0), some[r].sizes};
            box.offset[1] = part.offset[1];
            CHECK(some[r].values == part_of(whole[r], box).values);
          }
        }
      }
}
#endif
TEST_CASE_TEMPLATE("what is no number stays so, in whichever block of keys it is", T, ELEMENTS) {
  for (const std::int64_t key : {0, 400, 899}) {
    Definition d = definition<T>({1, 3, 900, 1, 1, 4, 4});
    d.k({0, key, 0, 1}) = std::numeric_limits<double>::quiet_NaN();
    d.compute();
    d.template check<T>({all_of(d.q.sizes)}, relative<T>);
  }
}
TEST_CASE_TEMPLATE("queries that stand at a position see what a cache holds up to it; outside, they give no number", T,
                   ELEMENTS) {
  for (const std::int64_t position : {0, 30, 66, 68, 100}) {
    Definition d = definition<T>({1, 3, 70, 4, 2, 16, 16});
    d.causal = d.positioned = true;
    d.position = position;
    d.compute();
    REQUIRE(std::isnan(d.out({0, 2, 0, 0})) == (position > 67));
    d.template check<T>({all_of(d.q.sizes)}, relative<T>, position <= 67);
    d.template check<T>(split(d.q.sizes, 2, 2), relative<T>, position <= 67);
  }
}
TEST_CASE_TEMPLATE("probabilities are dropped by their global index, and their gradients with them", T, ELEMENTS) {
  for (const std::int64_t keys : {64, 70, 130})
    for (const bool causal : {false, true}) {
      Definition d = definition<T>({2, 45, keys, 2, 1, 16, 16});
      d.dropped = 0.3;
      d.causal = causal;
      d.compute();
      for (const int dim : {0, 1, 2}) d.template check<T>(split(d.q.sizes, dim, 2), relative<T>);
    }
}
TEST_CASE_TEMPLATE("what is attended of parts of the keys is joined to what is attended of all", T, ELEMENTS) {
  for (const int parts : {2, 3, 5})
    for (const bool causal : {false, true})
      for (const bool masked : {false, true}) {
        Definition d = definition<T>({2, 60, 60, 4, 2, 16, 24});
        d.causal = causal;
        d.masked = masked;
        d.dropped = parts == 3 ? 0.3 : 0;
        d.seen = whole_numbers({2, 60}, 5, 2);
        for (std::int64_t j = 0; j < 60; ++j) d.seen({1, j}) = j < 40 ? 0 : 1;
        d.compute();
        d.template check_joined<T>(parts, relative<T>);
      }
}
