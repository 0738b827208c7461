// Gradients of vectors are completed in the order in which they appear, each bucket from where the last of its own is
// made, under the rest of the backward pass.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

struct Block {
  Parameter<float, Shape<16>> gain{ones}, shift{zeros};
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16>> bias{zeros};
  constexpr auto operator()(Distributed auto x) const { return x + (matmul(layer_norm(x, gain, shift), w) + bias); }
};
/// Vectors before a loop, in it, and behind it.
struct Network {
  Parameter<float, Shape<32, 16>> table;
  Block first;
  Layers<4, Block> blocks;
  Block next, last;
  Parameter<float, Shape<16>> gain{ones}, shift{zeros};
  Parameter<float, Shape<16, 32>> head;
  constexpr auto operator()(Distributed auto tokens, Distributed auto target) const {
    const auto x = last(next(blocks(first(embedding(tokens, table)))));
    return mean(cross_entropy(matmul(layer_norm(x, gain, shift), head), target));
  }
};
using Tokens = Tensor<int, Shape<8 / data / sequence, 4>>;
using Step = Training<Network, AdamW, Tokens, Tokens>;

struct Bucket {
  std::vector<std::string> members{};  ///< whose gradients it has
  int begins = 0;                      ///< the event that starts to complete it
  int computed_meanwhile = 0;          ///< operations of the backward pass until it is waited for
  int loops_meanwhile = 0;             ///< loops of the backward pass until it is waited for
};

/// Of each bucket of a plan the place in its events is looked at.
std::vector<Bucket> buckets(const Plan& plan) {
  std::vector<Bucket> all;
  const GraphView& g = plan.graph;
  const auto& events = plan.events;
  std::vector<int> made(g.nodes.size(), -1);  // by which event
  int loops_end = -1;
  for (int e = 0; e < static_cast<int>(events.size()); ++e) {
    const auto at = static_cast<std::size_t>(e);
    each_node(g, events[at], [&](int n) { made[static_cast<std::size_t>(n)] = e; });
    if (events[at].kind == EventKind::end) loops_end = e;
    if (events[at].kind != EventKind::compute || !g.node(events[at].node).is(Structural::bucket)) continue;
    const Node& bucket = g.node(events[at].node);
    int last = -1;
    for (const int sum : bucket.operands) {
      const int by = made[static_cast<std::size_t>(g.value(sum).node)];
      last = std::max(last, by >= 0 ? by : loops_end);  // what a loop hands on no event makes
    }
    REQUIRE(last >= 0);
    for (int i = last + 1; i < e; ++i)  // nothing but other buckets was computed since
      CHECK((events[static_cast<std::size_t>(i)].kind != EventKind::compute ||
             g.node(events[static_cast<std::size_t>(i)].node).is(Structural::bucket)));
    Bucket b{{}, -1, 0};
    for (const int sum : bucket.operands) b.members.emplace_back(g.path(g.member(g.value(sum).member)));
    for (std::size_t i = at + 1; i < events.size(); ++i) {
      const Node& n = g.node(events[i].node);
      if (events[i].kind == EventKind::start && n.operands[0] == bucket.result) b.begins = static_cast<int>(i);
      if (events[i].kind == EventKind::compute && b.begins >= 0 && n.phase == Phase::backward) ++b.computed_meanwhile;
      if (events[i].kind == EventKind::end && b.begins >= 0) ++b.loops_meanwhile;
      if (events[i].kind == EventKind::wait &&
          events[static_cast<std::size_t>(events[i].partner)].node == events[i].node && n.operands[0] == bucket.result)
        break;
    }
    all.push_back(b);
  }
  return all;
}

using Names = std::vector<std::string>;
// by whom gradients are charged: those of a norm's gain and shift by its gain
const Names behind{"gain", "gain", "last.bias", "last.gain", "last.gain", "next.bias", "next.gain", "next.gain"},
    before{"blocks.*.bias", "blocks.*.shift", "blocks.*.gain", "first.bias", "first.gain", "first.gain"};

void check(const Plan& plan) {
  INFO(text(plan));
  const std::vector<Bucket> all = buckets(plan);
  REQUIRE(all.size() == 2);
  CHECK(all[0].members == behind);
  CHECK(all[1].members == before);
  CHECK(all[0].loops_meanwhile == 1);     // under all layers
  CHECK(all[1].computed_meanwhile >= 1);  // under the embedding
}

}  // namespace

TEST_CASE("buckets fill as gradients appear, and begin when they are full") {
  check(plan<Step, Mesh{data = 2}>);
  check(derive<Step>(Mesh{data = 4, sequence = 2}));
}
TEST_CASE("with micro-batches they begin behind the last of these") {
  using Accumulated =
      Accumulate<2, Training<Network, AdamW, Tensor<int, Shape<4 / data, 4>>, Tensor<int, Shape<4 / data, 4>>>>;
  const std::vector<Bucket> all = buckets(derive<Accumulated>(Mesh{data = 2}));
  CHECK(all.size() == 2);
}
