// What attention over a sequence that several ranks share sends and holds, from plans: the volumes of the literature,
// and what is under way while a product is computed.
#include <vector>

#include <doctest/doctest.h>

#include <parallel/cost/price.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int batch = 2, positions = 64, heads = 8, size = 16;
constexpr std::int64_t state = batch * positions * heads * size;  // elements: N tokens, h = heads * size

/// Queries, keys and values are inputs whose gradients are wanted, so nothing but attention moves or lies anywhere.
template <Context how, bool causal>
struct Attending {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v) const {
    return mean(attention<causal, how>(q, k, v));
  }
};
template <int count>
using Heads = Wanted<float, Shape<batch, positions / sequence, count, size>>;
template <Context how, int groups = heads, bool causal = true>
using Step = Training<Attending<how, causal>, KeepGradients, Heads<heads>, Heads<groups>, Heads<groups>>;
template <Context how, int n, int groups = heads>
constexpr const Plan& on = plan<Step<how, groups>, Mesh{sequence = n}>;

/// Elements that a rank sends by a kind of collective.
constexpr double elements(const Communication& phase, KindOfCollective kind) { return phase.sent(kind(sequence)) / 4; }

// Ulysses: (n-1)/n^2 of queries, keys, values and result (Jacobs et al., 2023), and as much backward.
template <int n>
constexpr bool by_heads() {
  constexpr const Plan& p = on<Context::ulysses, n>;
  constexpr double sent = (n - 1.0) / (n * n) * 4 * state;
  static_assert(equals<elements(p.forward, all_to_all), sent>);
  static_assert(equals<elements(p.backward, all_to_all), sent>);
  static_assert(proven<p.uses_only(all_to_all(sequence), all_reduce(sequence))>);  // and the loss
  return true;
}
// Each has all keys and values: (n-1)/n of both, and as much backward.
template <int n>
constexpr bool gathered() {
  constexpr const Plan& p = on<Context::gathered, n>;
  constexpr double sent = (n - 1.0) / n * 2 * state;
  static_assert(equals<elements(p.forward, all_gather), sent>);
  static_assert(equals<elements(p.backward, reduce_scatter), sent>);
  static_assert(proven<p.uses_only(all_gather(sequence), reduce_scatter(sequence), all_reduce(sequence))>);
  return true;
}
// The ring: the same forward, twice that backward. Li et al. (2021) count 8(n-1) parts in all, as they complete the
// gradients of keys and values by all-reduces.
template <int n>
constexpr bool around() {
  constexpr const Plan& p = on<Context::ring, n>;
  constexpr double part = static_cast<double>(state) / n;
  static_assert(equals<elements(p.forward, rotate), 2 * (n - 1) * part>);
  static_assert(equals<elements(p.backward, rotate), 4 * (n - 1) * part>);
  static_assert(equals<p.forward.calls(rotate(sequence)), 2 * (n - 1)>);
  static_assert(equals<p.backward.calls(rotate(sequence)), 4 * (n - 1)>);
  static_assert(proven<p.uses_only(rotate(sequence), all_reduce(sequence))>);
  return true;
}
static_assert(by_heads<2>() && by_heads<4>() && by_heads<8>());
static_assert(gathered<2>() && gathered<4>() && gathered<8>());
static_assert(around<2>() && around<4>() && around<8>());

// A quarter of the key heads: a quarter is sent, of Ulysses a quarter of keys and values.
static_assert(elements(on<Context::ring, 2, heads / 4>.all, rotate) * 4 == elements(on<Context::ring, 2>.all, rotate));
static_assert(elements(on<Context::gathered, 2, heads / 4>.all, all_gather) * 4 ==
              elements(on<Context::gathered, 2>.all, all_gather));
static_assert(elements(on<Context::ulysses, 2, heads / 4>.forward, all_to_all) == 1.0 / 4 * (2 + 2.0 / 4) * state);

// In zigzag as much is sent and held.
template <Dim positions>
using OfSequence = Wanted<float, Shape<batch, positions, heads, size>>;
template <Dim positions>
using Around = Training<Attending<Context::ring, true>, KeepGradients, OfSequence<positions>, OfSequence<positions>,
                        OfSequence<positions>>;
template <int n>
constexpr bool balanced() {
  constexpr const Plan& zigzagged = plan<Around<positions / zigzag(sequence)>, Mesh{sequence = n}>;
  static_assert(equals<elements(zigzagged.forward, rotate), elements(on<Context::ring, n>.forward, rotate)>);
  static_assert(equals<elements(zigzagged.backward, rotate), elements(on<Context::ring, n>.backward, rotate)>);
  static_assert(equals<zigzagged.peak_memory(), on<Context::ring, n>.peak_memory()>);
  static_assert(proven<zigzagged.uses_only(rotate(sequence), all_reduce(sequence))>);
  return true;
}
static_assert(balanced<2>() && balanced<4>() && balanced<8>());

// On one rank nothing moves, and every word is attention alone.
static_assert(on<Context::ring, 1>.calls() == 0 && on<Context::ulysses, 1>.calls() == 0);
static_assert(on<Context::ring, 1>.peak_memory() == on<Context::gathered, 1>.peak_memory());

// Nothing is derived: what attention says is written.
static_assert(plan<Strict<Step<Context::ring>>, Mesh{sequence = 4}>.calls() == on<Context::ring, 4>.calls());

// What comes around a ring is kept as what other collectives give, but where a word has them again.
template <class... Word>
struct Deep {
  struct Block {
    Parameter<float, Shape<size, size>> w{normal(0.1)};
    constexpr auto operator()(Distributed auto x) const {
      const auto y = matmul(x, w);
      return x + attention<true, Context::ring>(y, y, y);
    }
  };
  Layers<4, Block, Word...> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(blocks(x)); }
};
template <class... Word>
constexpr const Plan& deep =
    plan<Training<Deep<Word...>, Sgd, Tensor<float, Shape<batch, positions / sequence, heads, size>>>,
         Mesh{sequence = 4}>;
static_assert(equals<deep<>.forward.calls(rotate), 4 * 2 * 3> && equals<deep<>.backward.calls(rotate), 4 * 4 * 3>);
static_assert(equals<deep<Recompute<>>.all.calls(rotate), deep<>.all.calls(rotate)>);
static_assert(equals<deep<Recompute<Repeat::collectives>>.backward.calls(rotate), 4 * 6 * 3>);

}  // namespace

TEST_CASE("a ring's memory falls with its ranks: what is kept at once, the peak where parts travel both ways") {
  const auto kept = [](const Plan& p) { return p.memory.of(Use::activations); };
  const OwnedPlan alone = derive<Step<Context::ring>>(Mesh{sequence = 1});
  for (const int n : {2, 4, 8, 16}) {
    INFO(n << " ranks");
    const OwnedPlan ring = derive<Step<Context::ring>>(Mesh{sequence = n}),
                    gathered = derive<Step<Context::gathered>>(Mesh{sequence = n});
    CHECK(kept(ring) * n == kept(alone));  // the result, and a number for each query and head
    CHECK(ring->peak_memory() < gathered->peak_memory());
    if (n == 2) continue;  // no gradients of keys travel while keys do
    const OwnedPlan twice = derive<Step<Context::ring>>(Mesh{sequence = 2 * n});
    CHECK(static_cast<double>(twice->peak_memory()) * 2 ==
          doctest::Approx(static_cast<double>(ring->peak_memory())).epsilon(0.01));
  }
  for (const int n : {2, 4}) {
    const OwnedPlan few = derive<Step<Context::ulysses>>(Mesh{sequence = n}),
                    twice = derive<Step<Context::ulysses>>(Mesh{sequence = 2 * n});
    CHECK(static_cast<double>(twice->peak_memory()) * 2 ==
          doctest::Approx(static_cast<double>(few->peak_memory())).epsilon(0.01));
  }
}

TEST_CASE("keys and values are on their way while a rank attends to them") {
  for (const int n : {2, 4, 8}) {
    INFO(n << " ranks");
    const OwnedPlan plan = derive<Step<Context::ring>>(Mesh{sequence = n});
    const GraphView& g = plan->graph;
    int keys = 0, gradients = 0, alone = 0;
    for (std::size_t from = 0; from < plan->events.size(); ++from) {
      const Event& start = plan->events[from];
      const Node& rotation = g.node(start.node);
      if (start.kind != EventKind::start || rotation.transition.collective != Collective::rotate) continue;
      // the product that is computed meanwhile
      std::vector<const Node*> products;
      std::size_t to = from + 1;
      for (; plan->events[to].kind != EventKind::wait || plan->events[to].node != start.node; ++to) {
        REQUIRE(to + 1 < plan->events.size());
        const Node& node = g.node(plan->events[to].node);
        if (plan->events[to].kind == EventKind::compute && node.operation->rate == Rate::attention)
          products.push_back(&node);
      }
      const bool key = g.maker(rotation.operands[0]).phase != Phase::backward || rotations(g, rotation.operands[0]) > 0;
      if (key) {
        ++keys;
        REQUIRE(products.size() == 1);
        int reads = 0;  // what is sent, and not what is received
        for (const int o : products[0]->operands) {
          reads += o == rotation.operands[0];
          CHECK(o != rotation.result);
        }
        CHECK(reads == 1);
      } else {
        ++gradients;
        CHECK(products.size() <= 1);
        alone += products.empty();
      }
      // it is read behind the wait only
      for (std::size_t e = from; e < to; ++e)
        if (plan->events[e].kind == EventKind::compute)
          for (const int o : g.node(plan->events[e].node).operands) CHECK(o != rotation.result);
    }
    CHECK(keys == 2 * 2 * (n - 1));
    CHECK(gradients == 2 * (n - 1));
    CHECK(alone == 2);  // the way home
  }
}

TEST_CASE("of a causal ring the last rank attends (2n - 1)/n times as long as the mean, in an order as long") {
  Machine machine;
  machine.rates.push_back({.ranks = 64});
  for (double& rate : machine.rates[0].products) rate = 1;
  for (const int n : {2, 4, 8}) {
    INFO(n << " ranks");
    const auto attends = [&](const OwnedPlan& plan) {
      double seconds = 0;
      for (const Event& e : plan->events)
        if (e.kind == EventKind::compute && plan->graph.node(e.node).operation->rate == Rate::attention)
          seconds += arithmetic_seconds(*plan, plan->graph.node(e.node), machine);
      return seconds;
    };
    const Mesh mesh{sequence = n};
    const double mean = attends(derive<Around<positions>>(Mesh{})) / n,
                 ring = attends(derive<Around<positions / sequence>>(mesh));
    CHECK(ring == doctest::Approx((2.0 * n - 1) / n * mean));
    CHECK(attends(derive<Around<positions / zigzag(sequence)>>(mesh)) == doctest::Approx(mean));
    CHECK(attends(derive<Around<positions / cyclic(sequence)>>(mesh)) == doctest::Approx(mean));
  }
}
