// What the rule of derivation gives for small programs: counted by hand from the rule (docs/placements.md).
#include <string>

#include <doctest/doctest.h>

#include "collectives.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace programs {
constexpr Mesh on_tensor{tensor = 2};

// mean(square(matmul(x, w))), x[4, 6] data
template <class W>
struct Squares {
  Parameter<float, W> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
template <class X, class W>
using SquaresStep = Training<Squares<W>, Sgd, Tensor<float, X>>;

constexpr auto& rows = plan<SquaresStep<Shape<4 / tensor, 6>, Shape<6, 8>>, on_tensor>;
static_assert(on(tensor, rows.forward) == Collectives{.all_reduce = 1, .reduced = 1});
static_assert(on(tensor, rows.backward) == Collectives{.all_reduce = 1, .reduced = 48});

constexpr auto& columns = plan<SquaresStep<Shape<4, 6>, Shape<6, 8 / tensor>>, on_tensor>;
static_assert(on(tensor, columns.forward) == Collectives{.all_reduce = 1, .reduced = 1});
static_assert(on(tensor, columns.backward) == Collectives{});

constexpr auto& inner = plan<SquaresStep<Shape<4, 6 / tensor>, Shape<6 / tensor, 8>>, on_tensor>;
static_assert(on(tensor, inner.forward) == Collectives{.all_reduce = 1, .reduced = 32});
static_assert(on(tensor, inner.backward) == Collectives{});

// A two-layer network, up by columns and down by rows, without and with its input around it.
template <bool residual>
struct Network {
  Parameter<float, Shape<16, 32 / tensor>> up;
  Parameter<float, Shape<32 / tensor>> b;
  Parameter<float, Shape<32 / tensor, 16>> down;
  Parameter<float, Shape<16>> c;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    if constexpr (residual)
      return mean(square(x + (matmul(gelu(matmul(x, up) + b), down) + c) - y));
    else
      return mean(square(matmul(gelu(matmul(x, up) + b), down) + c - y));
  }
};
using Whole = Shape<4, 16>;
constexpr auto& wanted = plan<Training<Network<false>, Sgd, Wanted<float, Whole>, Tensor<float, Whole>>, on_tensor>;
static_assert(on(tensor, wanted.forward) == Collectives{.all_reduce = 1, .reduced = 64});
static_assert(on(tensor, wanted.backward) == Collectives{.all_reduce = 1, .reduced = 64});

constexpr auto& unwanted = plan<Training<Network<false>, Sgd, Tensor<float, Whole>, Tensor<float, Whole>>, on_tensor>;
static_assert(on(tensor, unwanted.forward) == Collectives{.all_reduce = 1, .reduced = 64});
static_assert(on(tensor, unwanted.backward) == Collectives{});

using Slice = Shape<4 / tensor, 16>;
constexpr auto& sliced = plan<Training<Network<true>, Sgd, Wanted<float, Slice>, Tensor<float, Slice>>, on_tensor>;
static_assert(
    on(tensor, sliced.forward) ==
    Collectives{.all_reduce = 1, .reduced = 1, .all_gather = 1, .gathered = 64, .reduce_scatter = 1, .scattered = 64});
static_assert(on(tensor, sliced.backward) ==
              Collectives{.all_gather = 1, .gathered = 64, .reduce_scatter = 1, .scattered = 64});

// A plan beside that of another axis: data parallelism adds one reduction per parameter and one of the loss, and
// changes nothing on tensor.
using Both = Shape<4 / data, 16>;
constexpr auto& hybrid =
    plan<Training<Network<false>, Sgd, Wanted<float, Both>, Tensor<float, Both>>, Mesh{data = 2, tensor = 2}>;
// elements within the data shard
static_assert(on(tensor, hybrid.forward) == Collectives{.all_reduce = 1, .reduced = 32});
static_assert(on(tensor, hybrid.backward) == Collectives{.all_reduce = 1, .reduced = 32});
static_assert(on(data, hybrid.forward) == Collectives{.all_reduce = 1, .reduced = 1});
// within the tensor shard
static_assert(on(data, hybrid.backward) == Collectives{.all_reduce = 4, .reduced = 16 * 16 + 16 + 16 * 16 + 16});

// An axis of one rank is in the plan's program and causes no call.
constexpr auto& alone =
    plan<Training<Network<false>, Sgd, Wanted<float, Both>, Tensor<float, Both>>, Mesh{data = 1, tensor = 1}>;
static_assert(alone.calls() == 0 && alone.sent(tensor) == 0);

// What docs/placements.md tells one to know.
struct TwoProducts {
  Parameter<float, Shape<16 / tensor, 16>> w;
  Parameter<float, Shape<16 / tensor, 16>> v;
  Parameter<float, Shape<16>> gain;
};
struct Beside {
  TwoProducts p;
  constexpr auto operator()(Distributed auto x, Distributed auto z) const {
    const auto a = matmul(z, p.w), m = matmul(z, p.v);
    return mean(square(x + a * p.gain + m));
  }
};
struct Inside {
  TwoProducts p;
  constexpr auto operator()(Distributed auto x, Distributed auto z) const {
    const auto a = matmul(z, p.w), m = matmul(z, p.v);
    return mean(square(x + (a * p.gain + m)));
  }
};
template <class Model>
using TwoSums = Training<Model, Sgd, Wanted<float, Shape<4, 16>>, Tensor<float, Shape<4, 16 / tensor>>>;
static_assert(on(tensor, plan<TwoSums<Beside>, on_tensor>.forward) == Collectives{.all_reduce = 2, .reduced = 128});
static_assert(on(tensor, plan<TwoSums<Inside>, on_tensor>.forward) == Collectives{.all_reduce = 1, .reduced = 64});
// the gain's
static_assert(on(tensor, plan<TwoSums<Inside>, on_tensor>.backward) == Collectives{.all_reduce = 1, .reduced = 16});

// Whole tensors on an axis that only another tensor names: no collective, and the plan says that the work is done
// twice.
struct Idle {
  Parameter<float, Shape<16, 16>> w;
  Parameter<float, Shape<16, 16 / tensor>> v;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, w), v))); }
};
constexpr auto& idle = plan<Training<Idle, Sgd, Tensor<float, Shape<4, 16>>>, on_tensor>;
static_assert(on(tensor, idle.forward) == Collectives{.all_reduce = 1, .reduced = 1});
static_assert(idle.redundant(tensor) > 0.4 && idle.redundant(tensor) < 0.7);

// Queries, keys and values of one input: one retype, hence one reduction backward. A value needed as Broadcast and
// whole moves twice.
struct Three {
  Parameter<float, Shape<16, 8 / tensor>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(x, q) * matmul(x, k) * matmul(x, v)));
  }
};
static_assert(on(tensor, plan<Training<Three, Sgd, Wanted<float, Whole>>, on_tensor>.backward) ==
              Collectives{.all_reduce = 1, .reduced = 64});

// Tied weights: one reduction for both uses, through the transpose.
struct Tied {
  Parameter<float, Shape<16, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, w), transpose(w)))); }
};
static_assert(on(data, plan<Training<Tied, Sgd, Tensor<float, Shape<4 / data, 16>>>, Mesh{data = 2}>.backward) ==
              Collectives{.all_reduce = 1, .reduced = 128});

// A parameter that the function has forgotten.
struct Forgetful {
  Parameter<float, Shape<16, 4>> w;
  Parameter<float, Shape<16 / tensor, 8>> forgotten;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};

// A gradient that is not wanted only removes conjugates: training and evaluation have one forward plan.
using Evaluated = Evaluation<Network<true>, Wanted<float, Slice>, Tensor<float, Slice>>;
static_assert(on(tensor, plan<Evaluated, on_tensor>.forward) == on(tensor, sliced.forward));
static_assert(plan<Evaluated, on_tensor>.backward.calls() == 0 && plan<Evaluated, on_tensor>.optimizer.calls() == 0);
}  // namespace programs
using namespace programs;

TEST_CASE("what the compiler derives and what start-up derives is one plan") {
  using Step = Training<Network<true>, Sgd, Wanted<float, Slice>, Tensor<float, Slice>>;
  const OwnedPlan derived = derive<Step>(on_tensor);
  CHECK(text(derived.get()) == text(sliced));
  CHECK(derived->peak_memory() == sliced.peak_memory());
  REQUIRE(derived->events.size() == sliced.events.size());
  for (std::size_t e = 0; e < sliced.events.size(); ++e) {
    CHECK(derived->events[e].kind == sliced.events[e].kind);
    CHECK(derived->events[e].node == sliced.events[e].node);
    CHECK(derived->events[e].nodes == sliced.events[e].nodes);
  }
  for (std::size_t v = 0; v < sliced.storage.size(); ++v) CHECK(derived->storage[v].offset == sliced.storage[v].offset);
}

TEST_CASE("the text of a plan names every collective with its member and line, and what is computed twice") {
  const std::string printed = text(sliced);
  CHECK(printed.find("plan for tensor=2: 2 ranks") == 0);
  CHECK(printed.find("all_gather      tensor       f32[4/tensor, 16]") != std::string::npos);
  CHECK(printed.find("reduce_scatter  tensor       f32[4, 16] +tensor") != std::string::npos);
  CHECK(printed.find("c, plans.cpp:") != std::string::npos);
  CHECK(text(idle).find("computed 2 times on tensor") != std::string::npos);
}

TEST_CASE("the text of a plan names parameters that nothing reads, with the bytes of a rank") {
  using Step = Training<Forgetful, AdamW, Tensor<float, Shape<4, 16>>>;
  using Test = Evaluation<Forgetful, Tensor<float, Shape<4, 16>>>;
  const std::string line = "\n  read by nothing      256 B, forgotten\n";
  CHECK(text(derive<Step>(on_tensor).get()).find(line) != std::string::npos);
  CHECK(text(derive<Test>(on_tensor).get()).find(line) != std::string::npos);
  CHECK(text(sliced).find("read by nothing") == std::string::npos);
}
