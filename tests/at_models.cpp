// Models of which some values lie At some ranks, within pipelines, between layers, at rest and as the loss: losses and
// norms are those of one rank. And every optimizer at servers.
#include <doctest/doctest.h>

#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int micro_batches = 4, examples = 8, inputs = 6, width = 8, results = 4;

template <class P>
concept Trained = requires {
  typename P::Optimizer;
};
/// Losses and norms of two steps, on the last rank.
template <Trained P>
std::vector<double> steps(const Mesh& mesh) {
  std::vector<double> seen;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const auto plan = derive<P>(mesh.on_stage(mesh.coordinate(world.rank(), &stage)));
    under_test::Parameters parameters(*plan, world.rank(), 1);
    Trainer<Threads, under_test::Device> trainer(
        *plan, world, parameters, typename P::Optimizer::Hyperparameters{.learning_rate = 1e-2, .clip_norm = 0.5}, 1);
    const int batches = P::micro_batches * examples;
    const auto x = program::numbers<double>(batches * inputs, 1), y = program::numbers<double>(batches * results, 2);
    trainer.executor().inputs({{x, y}});
    std::vector<double> own;
    for (int step = 0; step < 2; ++step) {
      const StepResult r = trainer.step();
      own.insert(own.end(), {r.loss, r.gradient_norm});
    }
    if (world.rank() == world.size() - 1) seen = own;
  });
  return seen;
}
void check(const std::vector<double>& some, const std::vector<double>& one, const char* name, const Mesh& mesh) {
  INFO(name << " on " << text(mesh));
  REQUIRE(some.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(some[i] == doctest::Approx(one[i]).epsilon(1e-10));
}

using X = Tensor<double, Shape<examples / data, inputs>>;
using Y = Tensor<double, Shape<examples / data, results>>;
template <class Model, class Optimizer = AdamW>
using Once = Training<Model, Optimizer, X, Y>;
template <class Model>
using Step = Accumulate<micro_batches, Once<Model>>;

/// A value on its way over placements, and whole behind them.
template <auto first, auto... rest>
constexpr auto through(Distributed auto x) {
  const auto y = to<On<tensor, first>>(x);
  if constexpr (sizeof...(rest) > 0)
    return through<rest...>(y);
  else
    return to<On<tensor, Invariant>>(y);
}
/// `within`: what a block adds goes through these placements.
template <auto... within>
struct Block {
  Parameter<double, Shape<width, width>> w{normal(0.3)};
  Parameter<double, Shape<width>> b{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto h = gelu(matmul(x, w) + b);
    if constexpr (sizeof...(within) > 0)
      return x + through<within...>(h);
    else
      return x + h;
  }
};
/// What goes from layer to layer lies so.
template <auto carried>
struct Carrying {
  Block<> block;
  constexpr auto operator()(Distributed auto x) const {
    return to<On<tensor, carried>>(block(to<On<tensor, Invariant>>(x)));
  }
};
template <class Blocks, auto... carried>
struct Net {
  Parameter<double, Shape<inputs, width>> in{normal(0.3)};
  Blocks blocks;
  Parameter<double, Shape<width, results>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = matmul(x, in);
    if constexpr (sizeof...(carried) > 0)
      return mean(square(matmul(to<On<tensor, Invariant>>(blocks(to<On<tensor, carried...>>(h))), out) - y));
    else
      return mean(square(matmul(blocks(h), out) - y));
  }
};
template <class P>
using InOrder = Pipelined<schedules::one_forward_one_backward, P>;
template <class P>
using Interleaved = Pipelined<schedules::interleaved<2>, P>;

/// The parameters that have names here: each lies, or enters, in a way of its own.
template <class... Annotation>
struct Small {
  Parameter<double, Shape<inputs, 7>, Annotation...> in{normal(0.3)};
  Parameter<double, Shape<7>, Annotation...> b{normal(0.3)};
  Parameter<double, Shape<7, results>, Annotation...> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(gelu(matmul(x, entered(in)) + entered(b)), entered(out)) - y));
  }
  static constexpr auto entered(Distributed auto p) { return to<On<data, Broadcast>>(p); }
};
template <auto... lies>
struct Loss {
  Small<> small;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return to<On<data, lies>...>(small(x, y)); }
};

}  // namespace

TEST_CASE("within the blocks of a pipeline") {
  const std::vector<double> one = steps<Step<Net<Layers<4, Block<>>>>>(Mesh{data = 1});
  const Mesh both{stage = 2, tensor = 2};
  using Sum = Step<Net<Layers<4 / stage, Block<Broadcast, At<0>, Partial>>>>;
  check(steps<InOrder<Sum>>(both), one, "a term at the first", both);
  check(steps<Interleaved<Sum>>(both), one, "a term at the first, in chunks", both);
  using Last = Step<Net<Layers<4 / stage, Block<Broadcast, At<-1>>>>>;
  check(steps<InOrder<Last>>(both), one, "at the last", both);
  check(steps<Interleaved<Last>>(both), one, "at the last, in chunks", both);
}
TEST_CASE("from layer to layer, and from stage to stage") {
  const std::vector<double> one = steps<Step<Net<Layers<4, Block<>>>>>(Mesh{data = 1});
  const Mesh alone{tensor = 3}, both{stage = 2, tensor = 2};
  check(steps<Step<Net<Layers<4, Carrying<At<0>>>, At<0>>>>(alone), one, "carried", alone);
  check(steps<Step<Net<Layers<4, Carrying<At<-1>>, Recompute<>>, At<-1>>>>(alone), one, "and computed again", alone);
  check(steps<InOrder<Step<Net<Layers<4 / stage, Carrying<At<0>>>, At<0>>>>>(both), one, "in stages", both);
  check(steps<Interleaved<Step<Net<Layers<4 / stage, Carrying<At<1>>>, At<1>>>>>(both), one, "in chunks", both);
}
TEST_CASE("served stages") {
  const std::vector<double> one = steps<Step<Net<Layers<4, Block<>>>>>(Mesh{data = 1});
  const Mesh both{stage = 2, data = 2};
  using Served = AllStored<Step<Net<Layers<4 / stage, Block<>>>>, Stored<data, At<0>>>;
  check(steps<InOrder<Served>>(both), one, "in order", both);
  check(steps<Interleaved<Served>>(both), one, "in chunks", both);
  using PerStep = AllStored<Step<Net<Layers<4 / stage, Block<>>>>, Stored<data, At<1>, Gathered::per_step>>;
  check(steps<Pipelined<schedules::zero_bubble_h1, PerStep>>(both), one, "per step", both);
}
TEST_CASE("parameters that enter At a rank, stored split or there; the loss at a rank") {
  const std::vector<double> one = steps<Once<Small<>>>(Mesh{data = 1});
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}}) {
    check(steps<Once<Small<On<data, At<1>>>>>(mesh), one, "at a rank", mesh);
    check(steps<Once<Small<On<data, At<0>>, Stored<data>>>>(mesh), one, "stored split, padded", mesh);
    check(steps<Once<Small<On<data, At<1>>, Stored<data, Zero::states>>>>(mesh), one, "its states split", mesh);
    check(steps<Once<Small<Stored<data, At<0, 1>>>>>(mesh), one, "at two ranks", mesh);
    check(steps<Once<Loss<At<1>>>>(mesh), one, "the loss", mesh);
  }
}
TEST_CASE_TEMPLATE("every optimizer updates what servers have, alone or two of them", Optimizer, Sgd, Momentum,
                   Nesterov, Adam, AdamW, Lion, Adafactor, Muon) {
  using All = Once<Net<Layers<3, Block<>>>, Optimizer>;
  const std::vector<double> one = steps<All>(Mesh{data = 1});
  CHECK(one[2] < one[0]);
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}}) {
    check(steps<AllStored<All, Stored<data, At<0>>>>(mesh), one, "one", mesh);
    check(steps<AllStored<All, Stored<data, At<0, 1>>>>(mesh), one, "two", mesh);
    check(steps<AllStored<All, Stored<data, At<1>, Zero::states>>>(mesh), one, "states", mesh);
  }
}
