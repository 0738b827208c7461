// Programs of the shapes that real ones have, built, differentiated, scheduled and printed: several results, run-time
// numbers, parameters stored split, mixed element types, weighted tokens.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collectives.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace programs {
constexpr Mesh on_data{data = 2};
constexpr Mesh mesh{data = 2, tensor = 2};

std::vector<const Node*> nodes(const Plan& plan, const Operation& operation, Phase phase) {
  std::vector<const Node*> found;
  for (const Event& e : plan.events) {
    each_node(plan.graph, e, [&](int n) {
      const Node& node = plan.graph.node(n);
      if (e.kind == EventKind::compute && node.operation == &operation && node.phase == phase) found.push_back(&node);
    });
  }
  return found;
}

// Attention: its second result, the rows' statistic, is what its gradient computes from.
struct SelfAttention {
  Parameter<float, Shape<16, 4 / tensor, 8>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(attention(matmul(x, q), matmul(x, k), matmul(x, v))));
  }
};
using Attending = Training<SelfAttention, Sgd, Tensor<float, Shape<4 / data, 8, 16>>>;

// Dropout: masks are made from run-time numbers and computed again backward.
struct Dropping {
  Parameter<float, Shape<16, 32 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(dropout(gelu(dropout(matmul(x, w), 0.25)), 0.5)));
  }
};
using Dropped = Training<Dropping, Sgd, Tensor<float, Shape<4 / data, 16>>>;

// Parameters stored split on data (ZeRO-3): one gather before the first use, one reduce-scatter behind the last, at
// rest a half of everything.
struct StoredSplit {
  Parameter<float, Shape<16, 8>, Stored<data, Split<0>>> w;
  Parameter<float, Shape<8>, Stored<data, Split<0>>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) + b)); }
};
using Sharded = Training<StoredSplit, AdamW, Tensor<float, Shape<4 / data, 16>>>;
struct StoredLayer {
  Parameter<float, Shape<16, 16>, Stored<data, Split<0>>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct StoredLayers {
  Layers<4, StoredLayer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
using ShardedLayers = Training<StoredLayers, AdamW, Wanted<float, Shape<4 / data, 16>>>;

// Mixed element types: products in bf16, whether a weight says so or is cast; weights at rest, sums over ranks and the
// loss in f32.
struct Mixed {
  Parameter<float, Shape<16, 32 / tensor>> up;
  Parameter<bfloat16, Shape<32 / tensor, 16>> down;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(cast<float>(matmul(gelu(matmul(cast<bfloat16>(x), cast<bfloat16>(up))), down))));
  }
};
using MixedStep = Training<Mixed, AdamW, Tensor<float, Shape<4 / data, 16>>>;

// A weight per token, and their global sum below the line.
struct Weighted {
  Parameter<float, Shape<16, 32 / tensor>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto target, Distributed auto weight) const {
    return sum(cross_entropy(matmul(x, w), target) * weight) / sum(weight);
  }
};
using WeightedStep = Training<Weighted, Sgd, Tensor<float, Shape<4 / data, 8, 16>>, Tensor<int, Shape<4 / data, 8>>,
                              Tensor<float, Shape<4 / data, 8>>>;

struct Unsplit {
  Parameter<float, Shape<16, 32>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    return mean(cross_entropy(matmul(x, w), target));
  }
};
using WholeLogits = Training<Unsplit, Sgd, Tensor<float, Shape<4 / data, 16>>, Tensor<int, Shape<4 / data>>>;

// What is fused: a product with its bias and gelu, and the way back; sums with dropout behind a collective and where
// there is none.
using Rows = Wanted<float, Shape<4 / data, 16>>;
struct Joining {
  Parameter<float, Shape<16, 32 / tensor>> up;
  Parameter<float, Shape<32 / tensor>> up_bias;
  Parameter<float, Shape<32 / tensor, 16>> down;
  Parameter<float, Shape<16>> down_bias;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = to<On<tensor, Invariant>>(matmul(gelu(up_bias + matmul(x, up)), down));
    const auto z = x + dropout(y + down_bias, 0.1);
    return mean(square(dropout(z, 0.1) + gelu(z + down_bias)));
  }
};
using JoinedProgram = Training<Joining, Sgd, Rows>;
struct Projecting {
  Parameter<float, Shape<16, 32 / tensor>> w;
  Parameter<float, Shape<32 / tensor>> b;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w) + b); }
};
using Projected = Evaluation<Projecting, Rows>;
struct PendingBias {
  Parameter<float, Shape<16 / tensor, 16>> w;
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w) + b; }
};
using Pending = Evaluation<PendingBias, Rows>;

// A weight's gradient with its bias's, however the weight lies; and two that are not: the sum is of another value, or
// over other dimensions.
struct Linear {
  Parameter<float, Shape<16, 32 / tensor>> w;
  Parameter<float, Shape<32 / tensor>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) + b)); }
};
struct LinearTransposed {
  Parameter<float, Shape<32 / tensor, 16>> w;
  Parameter<float, Shape<32 / tensor>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, transpose(w)) + b)); }
};
struct RowParallel {
  Parameter<float, Shape<16 / tensor, 32>> w;
  Parameter<float, Shape<32>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) + b)); }
};
struct LinearBlock {
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const { return x + gelu(matmul(x, w) + b); }
};
struct LinearStages {
  LinearBlock before;
  Layers<4 / stage, LinearBlock> blocks;
  LinearBlock after;
  constexpr auto operator()(Distributed auto x) const { return mean(square(after(blocks(before(x))))); }
};
struct SumOfAnother {
  Parameter<float, Shape<16, 32>> w;
  Parameter<float, Shape<32>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(exp(matmul(x, w)) + b)); }
};
struct SumOverOthers {
  Parameter<float, Shape<16, 32>> w;
  Parameter<float, Shape<8 / data, 1>> b;
  Parameter<float, Shape<1>> c;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(x, w) + b)) + mean(square(matmul(x, w) + c));
  }
};

struct RowsJoined {
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(concatenate<1>(slice<1, 0, 1>(x), slice<1, 1, 2>(x))));
  }
};
// What is not: a value that is read twice, a sum that is no bias, products in batches, what a move or a loop stands
// between.
struct ReadTwice {
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return mean(square(y + b) * y);
  }
};
struct NoBias {
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(x, w) + x) + (sum<0>(matmul(x, w)) + b));
  }
};
struct InBatches {
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(batched_matmul(reshape<4, 4, 4>(x), reshape<4, 4, 4>(x)) + reshape<4, 4>(b)));
  }
};
struct AcrossMove {
  Parameter<float, Shape<16 / tensor, 16>> w;
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(to<On<tensor, Invariant>>(matmul(x, w)) + b));
  }
};
struct SlicedBlock {
  Parameter<float, Shape<16, 48>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return x + gelu(slice<1, 0, 16>(y)) * gelu(slice<1, 16, 32>(y)) + gelu(slice<1, 32, 48>(y));
  }
};
struct SlicedStages {
  Layers<4 / stage, SlicedBlock> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
// What goes element by element: gates, relu squared, more than four in a row.
struct Gated {
  Parameter<float, Shape<16, 32 / tensor>> gate, up;
  Parameter<float, Shape<32 / tensor, 16>> down;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = to<On<tensor, Invariant>>(matmul(silu(matmul(x, gate)) * matmul(x, up), down));
    return mean(square(square(relu(y))));
  }
};
struct LongChain {
  Parameter<float, Shape<16, 16>> w;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(sigmoid(sqrt(2.0 * tanh(exp(matmul(x, w)))))));
  }
};
struct AddsBias {
  Parameter<float, Shape<16>> b;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return x * (y + b); }
};
struct AcrossLoop {
  Parameter<float, Shape<16, 16>> w;
  Layers<2, AddsBias> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x, matmul(x, w)))); }
};
struct Doubling {
  Parameter<float, Shape<16, 16>> w;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
};
struct DoublingLayers {
  Layers<3, Doubling> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
struct LooksUp {
  Parameter<float, Shape<12, 8>> token, head;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean(cross_entropy(matmul(tanh(embedding(tokens, token)), transpose(head)), targets));
  }
};
struct LooksUpTied {
  Parameter<float, Shape<12, 8>> token;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean(cross_entropy(matmul(tanh(embedding(tokens, token)), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<4, 6>>;
// Slices of one value: its gradient is put together of theirs where they fill it, in whatever order they are read.
template <int dim, auto... ranges>
struct Slicing {
  Parameter<float, Shape<16, 12>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return mean((square(slice<dim, ranges[0], ranges[1]>(y)) + ...));
  }
};
using Range = std::array<int, 2>;
struct SlicedAndRead {
  Parameter<float, Shape<16, 12>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    const auto all = mean(square(y));
    return all + mean(slice<1, 0, 6>(y) * slice<1, 6, 12>(y));
  }
};
struct SlicedAcross {
  Parameter<float, Shape<16, 12>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
    return mean(slice<0, 0, 4>(y)) + mean(slice<1, 0, 6>(y));
  }
};
/// How many pads, additions in place and concatenations the gradient needs.
struct OfSlices {
  int pads, additions, concatenations;
  bool operator==(const OfSlices&) const = default;
};
template <class Model>
OfSlices of_slices() {
  const OwnedPlan plan = derive<Training<Model, Sgd, Wanted<float, Shape<8, 16>>>>(Mesh{});
  const auto count = [&](const Operation& o) { return static_cast<int>(nodes(*plan, o, Phase::backward).size()); };
  return {count(operation::pad), count(operation::accumulate_slice), count(operation::concatenate)};
}

/// Every axis that a program names, with two ranks.
template <class Model, class Input>
Mesh mesh_of() {
  const Graph graph = build<Training<Model, Sgd, Input>>();
  AxisList axes;
  for (const Value& v : graph.values) v.type.layout.collect(axes);
  Mesh on;
  for (const Axis* axis : axes) on.axes[on.count++] = {axis, 2};
  return on;
}
/// The fusions of a program's step that begin with one of these operations.
template <class Model, class Input = Rows>
std::vector<std::string> fused(const std::vector<std::string>& first = {"matmul"}) {
  std::vector<std::string> names;
  const OwnedPlan plan = derive<Training<Model, Sgd, Input>>(mesh_of<Model, Input>());
  for (const Event& e : plan->events)
    if (e.nodes > 1 && std::find(first.begin(), first.end(), plan->graph.node(e.node).operation->name) != first.end())
      names.push_back(operations(plan->graph, e));
  return names;
}
/// The fusions of the forward pass that have no product.
template <class Model, class Program>
std::vector<std::string> forward_chains() {
  std::vector<std::string> names;
  const OwnedPlan plan = derive<Program>(mesh_of<Model, Rows>());
  for (const Event& e : plan->events)
    if (const Node& node = plan->graph.node(e.node);
        e.nodes > 1 && node.phase == Phase::forward && node.operation != &operation::matmul)
      names.push_back(operations(plan->graph, e));
  return names;
}
/// The fusion of a product and the sum of a factor, in the backward pass: its first node.
const Node* product_with_sum(const Plan& plan) {
  for (const Event& e : plan.events)
    if (e.nodes > 1 && operations(plan.graph, e) == "matmul&sum_to") return &plan.graph.node(e.node);
  return nullptr;
}
}  // namespace programs
using namespace programs;

TEST_CASE("what stands one behind the other is fused, and nothing else changes") {
  using Names = std::vector<std::string>;
  CHECK(fused<Joining>() == Names{"matmul+add+gelu", "matmul+gelu_gradient", "matmul&sum_to"});
  CHECK(fused<ReadTwice>().empty());
  CHECK(fused<NoBias>().empty());
  CHECK(fused<InBatches, Wanted<float, Shape<4, 16>>>().empty());
  CHECK(fused<AcrossMove>().empty());
  CHECK(fused<AcrossLoop>().empty());
  CHECK(fused<Linear>() == Names{"matmul+add", "matmul&sum_to"});
  CHECK(fused<LinearTransposed>() == Names{"matmul+add", "matmul&sum_to"});
  CHECK(fused<RowParallel>() == Names{"matmul+add", "matmul&sum_to"});
  CHECK(fused<SumOfAnother>().empty());
  CHECK(fused<SumOverOthers, Wanted<float, Shape<8 / data, 16>>>().empty());
  for (const Mesh& on : {Mesh{data = 1, tensor = 1}, mesh}) {
    const OwnedPlan whole = derive<JoinedProgram>(on), apart = derive(build_unfused<JoinedProgram>(), on, {}, {});
    CHECK(whole->flops() == apart->flops());
    CHECK(whole->all.messages() == apart->all.messages());
    CHECK(whole->calls() == apart->calls());
    CHECK(whole->memory.of(Use::activations) == apart->memory.of(Use::activations));
    CHECK(whole->memory.of(Use::temporaries) < apart->memory.of(Use::temporaries));
  }
}
TEST_CASE("what goes element by element is fused, four at most") {
  using Names = std::vector<std::string>;
  CHECK(forward_chains<Gated, Evaluation<Gated, Rows>>() == Names{"silu+multiply", "relu+square+square"});
  CHECK(forward_chains<LongChain, Evaluation<LongChain, Rows>>() == Names{"exp+tanh+scale+sqrt", "sigmoid+square"});
  CHECK(forward_chains<ReadTwice, Evaluation<ReadTwice, Rows>>() == Names{"add+square+multiply"});
  // but what the way back reads lies apart, and would only take more room at one time
  CHECK(forward_chains<Gated, Training<Gated, Sgd, Rows>>().empty());
  CHECK(forward_chains<RowsJoined, Evaluation<RowsJoined, Rows>>().empty());  // whose pieces are no repeated rows
  CHECK(forward_chains<Joining, Training<Joining, Sgd, Rows>>() == Names{"add+dropout+add", "gelu+add"});
}
TEST_CASE("a bias's gradient comes with its weight's, and is exchanged behind both") {
  const auto same = [&]<class Model>(Model) {
    const OwnedPlan whole = derive<Training<Model, Sgd, Rows>>(mesh),
                    apart = derive(build_unfused<Training<Model, Sgd, Rows>>(), mesh, {}, {});
    CHECK(whole->flops() == apart->flops());
    CHECK(whole->all.messages() == apart->all.messages());
    for (const Axis* axis : {&data, &tensor})
      CHECK(whole->redundant(*axis) == doctest::Approx(apart->redundant(*axis)));
    REQUIRE(product_with_sum(*whole) != nullptr);
    const Node &product = *product_with_sum(*whole), &sum = whole->graph.node(product.then);
    const Value &weight = whole->graph.value(product.result), &bias = whole->graph.value(sum.result);
    CHECK(weight.type.layout.rank() == 2);
    CHECK(bias.type.layout.rank() == 1);
    const auto at = [&](int v) { return whole->storage[static_cast<std::size_t>(v)].offset; };
    CHECK(at(product.result) != at(sum.result));
    bool there = false;
    for (const int n : whole->graph.order) {
      const Node& node = whole->graph.node(n);
      there = there || &node == &product;
      for (const int o : node.operands) CHECK((there || (o != product.result && o != sum.result)));
    }
    return product.operands[1] == sum.operands[0] ? 1 : product.operands[0] == sum.operands[0] ? 0 : -1;
  };
  CHECK(same(Linear{}) == 1);
  CHECK(same(LinearTransposed{}) == 0);
  CHECK(same(RowParallel{}) == 1);
}
TEST_CASE("a bias's gradient on a stage is that stage's work alone") {
  using Step = Accumulate<4, Training<LinearStages, Sgd, Rows>>;
  for (const int s : {0, 1}) {
    const Mesh on = Mesh{stage = 2, data = 2}.on_stage(s);
    const OwnedPlan whole = derive<Step>(on), apart = derive(build_unfused<Step>(), on, {}, {});
    int fusions = 0;
    for (const Event& e : whole->events) fusions += e.nodes > 1 && operations(whole->graph, e) == "matmul&sum_to";
    CHECK(fusions >= 2);
    for (const Axis* axis : {&stage, &data}) CHECK(whole->redundant(*axis) == doctest::Approx(apart->redundant(*axis)));
  }
}
TEST_CASE("gradients of slices that fill a value are concatenated; others are padded or added in place") {
  CHECK(of_slices<Slicing<1, Range{0, 4}, Range{4, 8}, Range{8, 12}>>() == OfSlices{0, 0, 1});
  CHECK(of_slices<Slicing<1, Range{8, 12}, Range{0, 4}, Range{4, 8}>>() == OfSlices{0, 0, 1});
  CHECK(of_slices<Slicing<1, Range{0, 6}, Range{6, 12}>>() == OfSlices{0, 0, 1});
  CHECK(of_slices<Slicing<0, Range{4, 8}, Range{0, 4}>>() == OfSlices{0, 0, 1});
  CHECK(of_slices<Slicing<1, Range{0, 12}>>() == OfSlices{1, 0, 0});
  CHECK(of_slices<Slicing<1, Range{0, 4}, Range{8, 12}>>() == OfSlices{1, 1, 0});  // a gap
  // at the beginning
  CHECK(of_slices<Slicing<1, Range{4, 8}, Range{8, 12}>>() == OfSlices{1, 1, 0});
  CHECK(of_slices<Slicing<1, Range{0, 4}, Range{4, 8}>>() == OfSlices{1, 1, 0});  // at the end
  // they overlap
  CHECK(of_slices<Slicing<1, Range{0, 6}, Range{3, 9}, Range{6, 12}>>() == OfSlices{1, 2, 0});
  CHECK(of_slices<Slicing<1, Range{0, 6}, Range{0, 6}>>() == OfSlices{1, 1, 0});
  CHECK(of_slices<SlicedAndRead>() == OfSlices{0, 0, 1});
  CHECK(of_slices<SlicedAcross>() == OfSlices{1, 1, 0});
}
TEST_CASE("gradients of embeddings are added in place to those of a tied head and of micro-batches") {
  const auto counts = []<class Step>(std::type_identity<Step>) {
    const OwnedPlan plan = derive<Step>(Mesh{});
    const auto count = [&](const Operation& o) { return static_cast<int>(nodes(*plan, o, Phase::backward).size()); };
    return std::array{count(operation::embedding_derivative), count(operation::accumulate_rows)};
  };
  using Tied = Training<LooksUpTied, Sgd, Tokens, Tokens>;
  using Untied = Training<LooksUp, Sgd, Tokens, Tokens>;
  CHECK(counts(std::type_identity<Tied>{}) == std::array{0, 1});
  CHECK(counts(std::type_identity<Accumulate<2, Tied>>{}) == std::array{0, 1});
  CHECK(counts(std::type_identity<Untied>{}) == std::array{1, 0});
  CHECK(counts(std::type_identity<Accumulate<2, Untied>>{}) == std::array{0, 1});
}
TEST_CASE("a layer's gradient is made in its place where the move that completes it has one rank") {
  const auto copied = []<class Program>(std::type_identity<Program>, const Mesh& on) {
    const OwnedPlan plan = derive<Program>(on);
    int moves = 0, copies = 0;
    for (const Event& e : plan->events) {
      const Node& node = plan->graph.node(e.node);
      if (e.kind != EventKind::compute || !node.is(Structural::move)) continue;
      const auto at = [&](int v) { return plan->storage[static_cast<std::size_t>(v)]; };
      ++moves;
      copies += at(node.operands[0]) == at(node.result) ? 0 : 1;
    }
    return std::array{moves, copies};
  };
  using Step = Training<DoublingLayers, Sgd, Rows>;
  CHECK(copied(std::type_identity<Step>{}, Mesh{}) == std::array{1, 0});
  CHECK(copied(std::type_identity<Step>{}, Mesh{data = 2}) == std::array{0, 0});
  using Scattered = AllStored<Step, Stored<data, Zero::gradients>>;
  CHECK(copied(std::type_identity<Scattered>{}, Mesh{}) == std::array{1, 0});
}
TEST_CASE("what is between nodes of a fusion needs no room where a stage has several chunks") {
  using Step = Accumulate<4, Training<LinearStages, Sgd, Rows>>;
  const auto arena = [](const Graph& graph) {
    return derive(with_schedule(graph, schedules::interleaved<2>), Mesh{stage = 2, data = 2}.on_stage(0), {}, {})
        ->memory.arena;
  };
  CHECK(arena(build<Step>()) < arena(build_unfused<Step>()));
}
TEST_CASE("what concatenation leaves unneeded keeps nothing, where gradients of weights stand apart") {
  using Step = Accumulate<4, Training<SlicedStages, Sgd, Tensor<float, Shape<8, 16>>>>;
  const auto arena = [](const Graph& graph) {
    return derive(with_schedule(graph, schedules::zero_bubble_h1), Mesh{stage = 2}.on_stage(0), {}, {})->memory.arena;
  };
  CHECK(arena(build<Step>()) <= arena(build_unfused<Step>()));
}
TEST_CASE("a bias that joins a pending sum is work of every rank") {
  const OwnedPlan whole = derive<Pending>(mesh), apart = derive(build_unfused<Pending>(), mesh, {}, {});
  CHECK(whole->events.size() < apart->events.size());
  CHECK(whole->flops() == apart->flops());
  CHECK(whole->redundant(tensor) == doctest::Approx(apart->redundant(tensor)));
  CHECK(whole->redundant(tensor) > 0);
}
TEST_CASE("what is between parts of a fused operation needs no room") {
  const OwnedPlan whole = derive<Projected>(mesh), apart = derive(build_unfused<Projected>(), mesh, {}, {});
  CHECK(whole->memory.arena == 2 * 16 * 4);  // f32[2, 16] on each rank
  CHECK(apart->memory.arena == 2 * whole->memory.arena);
}
TEST_CASE("a fusion: where its results lie, what it reads, the line of its first node") {
  constexpr auto& p = plan<JoinedProgram, mesh>;
  const auto fusion = std::find_if(p.events.begin(), p.events.end(), [](const Event& e) {
    return e.nodes == 3 && p.graph.node(e.node).operation == &operation::matmul;
  });
  REQUIRE(fusion != p.events.end());
  CHECK(operations(p.graph, *fusion) == "matmul+add+gelu");
  std::vector<int> results;
  each_node(p.graph, *fusion, [&](int n) { results.push_back(p.graph.node(n).result); });
  const auto offset = [&](std::size_t i) { return p.storage[static_cast<std::size_t>(results[i])].offset; };
  CHECK(offset(0) == offset(1));  // the product lies where the sum does, which the way back reads
  CHECK(offset(1) != offset(2));
  CHECK(p.graph.origin(p.graph.node(fusion->node)).operation == &operation::matmul);
  const auto reads = [&](const Node* n) { return n->operands[0] == results[1]; };
  const auto slopes = nodes(p, operation::gelu_derivative, Phase::backward);
  CHECK(std::count_if(slopes.begin(), slopes.end(), reads) == 1);
  for (const int result : results) {  // each of its results still says what it comes from
    const bool said = std::any_of(p.graph.origins.begin(), p.graph.origins.end(),
                                  [&](const Origin& o) { return o.result == result; });
    CHECK(said);
  }
}

TEST_CASE(
    "several results: cross entropy reads the logits once for the largest and the sum, and where they are split makes the sum relative to the largest of all") {
  constexpr auto& p = plan<WeightedStep, mesh>;
  const auto statistics = nodes(p, operation::class_exponentials, Phase::forward),
             rescaled = nodes(p, operation::rescaled_exponentials, Phase::forward);
  REQUIRE(statistics.size() == 1);
  REQUIRE(rescaled.size() == 1);
  CHECK(statistics[0]->results == 2);
  CHECK(nodes(p, operation::class_maximum, Phase::forward).empty());
  CHECK(rescaled[0]->operands[0] == statistics[0]->result + 1);
  CHECK(rescaled[0]->operands[1] == statistics[0]->result);
  CHECK(p.graph.maker(rescaled[0]->operands[2]).operands[0] == statistics[0]->result);
  CHECK(p.graph.maker(rescaled[0]->operands[2]).transition.maximum);
  CHECK(nodes(plan<WholeLogits, on_data>, operation::class_exponentials, Phase::forward).size() == 1);
  CHECK(nodes(plan<WholeLogits, on_data>, operation::rescaled_exponentials, Phase::forward).empty());
}

TEST_CASE("several results: attention's gradient computes from its statistic, heads stay split") {
  constexpr auto& p = plan<Attending, mesh>;
  static_assert(p.backward.collectives(tensor) == 0);  // q, k and v read data: no f
  static_assert(p.backward.collectives(data) == 3);
  const auto forward = nodes(p, operation::attention, Phase::forward),
             backward = nodes(p, operation::attention_derivative, Phase::backward);
  REQUIRE(forward.size() == 1);
  REQUIRE(backward.size() == 1);
  CHECK(forward[0]->results == 2);
  CHECK(text(p.graph.value(forward[0]->result).type) == "f32[4/data, 8, 4/tensor, 8]");
  CHECK(text(p.graph.value(forward[0]->result + 1).type) == "f32[4/data, 8, 4/tensor]");
  CHECK(backward[0]->operands[4] == forward[0]->result + 1);
  CHECK(backward[0]->results == 3);
  CHECK(text(p).find("attention") == std::string::npos);  // it communicates nothing
}

TEST_CASE("run-time numbers: every dropout has its own stream, forward and backward the same mask") {
  constexpr auto& p = plan<Dropped, mesh>;
  std::vector<std::string> names;
  for (const Name& name : p.graph.scalars) names.emplace_back(p.graph.text(name));
  for (const char* name : {"seed", "step", "learning_rate", "weight_decay", "clip_norm"})
    CHECK_MESSAGE(std::count(names.begin(), names.end(), name) == 1, name);
  const auto forward = nodes(p, operation::dropout, Phase::forward),
             backward = nodes(p, operation::dropout, Phase::backward);
  REQUIRE(forward.size() == 2);
  REQUIRE(backward.size() == 2);
  CHECK_FALSE(forward[0]->ints[2] == forward[1]->ints[2]);
  for (int i = 0; i < 2; ++i) {
    const auto u = static_cast<std::size_t>(i);
    CHECK(forward[u]->operands[1] == p.graph.scalar_value);
    CHECK(backward[u]->operands[1] == p.graph.scalar_value);
    CHECK(backward[u]->ints == forward[1 - u]->ints);
    CHECK(backward[u]->reals[0] == forward[1 - u]->reals[0]);
  }
}

TEST_CASE("parameters stored split lie split, with their optimizer state") {
  const OwnedPlan p = derive<Sharded>(on_data);
  for (const Member& m : p->graph.members) {
    if (m.role == Role::input) continue;
    CAPTURE(std::string(p->graph.path(m)));
    CHECK(m.type.layout.on(&data) == Split<0>);
  }
  // 16 x 8 and 8 elements, a half each, aligned
  CHECK(p->memory.by_use[static_cast<int>(Use::parameters)] == 64 * 4 + 64);
  CHECK(p->memory.by_use[static_cast<int>(Use::optimizer_state)] == 2 * (64 * 4 + 64));
  CHECK(on(data, p->forward).all_gather == 2);
  CHECK(on(data, p->forward).gathered == 128 + 8);
  CHECK(on(data, p->optimizer).all_reduce == 1);  // the norm of the gradients, each rank's part
}

TEST_CASE("from stored to entering an operation is one transition: gathered forward, reduce-scattered backward") {
  const OwnedPlan p = derive<Sharded>(on_data);
  CHECK(on(data, p->forward) == Collectives{.all_reduce = 1, .reduced = 1, .all_gather = 2, .gathered = 136});
  CHECK(on(data, p->backward) == Collectives{.reduce_scatter = 2, .scattered = 136});
  // layer by layer, and again backward
  const OwnedPlan layers = derive<ShardedLayers>(on_data);
  CHECK(on(data, layers->forward) == Collectives{.all_reduce = 1, .reduced = 1, .all_gather = 4, .gathered = 4 * 256});
  CHECK(on(data, layers->backward) ==
        Collectives{.all_gather = 4, .gathered = 4 * 256, .reduce_scatter = 4, .scattered = 4 * 256});
  CHECK(layers->forward.largest_message(all_gather) == 4 * 256);
  // of each micro-batch
  const OwnedPlan accumulated = derive<Accumulate<3, Sharded>>(on_data);
  CHECK(on(data, accumulated->forward) ==
        Collectives{.all_reduce = 1, .reduced = 1, .all_gather = 6, .gathered = 3 * 136});
  CHECK(on(data, accumulated->backward) == Collectives{.reduce_scatter = 6, .scattered = 3 * 136});
}

TEST_CASE("mixed element types: sums travel and are added in f32, also of bf16") {
  constexpr auto& p = plan<MixedStep, mesh>;
  static_assert(on(tensor, p.forward) == Collectives{.all_reduce = 1, .reduced = 32});
  static_assert(p.forward.messages(tensor) == 4 * 32);
  static_assert(p.backward.messages(data) == 4 * (16 * 16 + 16 * 16));  // within the tensor shard
  p.all.each([&](const Node& node, std::int64_t) {
    CHECK(node.transition.reduction == p.graph.value(node.operands[0]).type.dtype);
  });
  for (const Member& m : p.graph.members) CHECK(m.type.dtype == DType::f32);
}

TEST_CASE("a weighted mean divides by the global sum of weights: both sums are completed, nothing more") {
  constexpr auto& p = plan<WeightedStep, mesh>;
  static_assert(on(data, p.forward) == Collectives{.all_reduce = 2, .reduced = 2});
  static_assert(on(tensor, p.forward) == Collectives{.all_reduce = 3, .reduced = 3 * 16});
  static_assert(on(data, p.backward) == Collectives{.all_reduce = 1, .reduced = 16 * 16});
  static_assert(on(tensor, p.backward) == Collectives{});
}

TEST_CASE("micro-batches: gradients add up, still pending, and are reduced once") {
  const OwnedPlan one = derive<WeightedStep>(mesh), three = derive<Accumulate<3, WeightedStep>>(mesh);
  CHECK(on(data, three->backward) == on(data, one->backward));
  CHECK(on(tensor, three->forward) == Collectives{.all_reduce = 9, .reduced = 9 * 16});
  CHECK(three->graph.member(1).type.layout.rank() == 4);  // the inputs of all micro-batches, one behind the other
  CHECK(three->graph.member(1).type.layout.dims[0] == Dim(3));
}
