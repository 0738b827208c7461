// Programs over one model share a rank's parameters where they cut the model alike, and are refused where they do not.
#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int width = 4, depth = 8, rows = 4, micro_batches = 4;

struct Block {
  Parameter<double, Shape<width, width>> w{normal(0.9)};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w)); }
};
/// What stands behind the layers is as much work as some of them: cut by cost, the last stage has fewer.
struct Model {
  Layers<depth / stage, Block> blocks;
  Parameter<double, Shape<width, 3 * width>> out{normal(0.9)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(blocks(x), out))); }
};
using X = Tensor<double, Shape<rows / data, width>>;
using Train = Accumulate<micro_batches, Training<Model, AdamW, X>>;
using Evaluate = Evaluation<Model, X>;

const std::vector<double> numbers = program::numbers<double>(micro_batches * rows * width, 1);

OwnedPlan plan_of(const Graph& graph, const Mesh& mesh, int rank) {
  return derive(graph, mesh.on_stage(mesh.coordinate(rank, &stage)), {}, {});
}

/// The loss that an evaluation gives with the parameters of a training, after one step of that.
double loss(const Graph& training, const Graph& evaluation, const Mesh& mesh) {
  double result = 0;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan trained = plan_of(training, mesh, world.rank()),
                    evaluated = plan_of(evaluation, mesh, world.rank());
    under_test::Parameters parameters(trained, world.rank(), 3);
    Trainer<Threads, under_test::Device> trainer(trained, world, parameters,
                                                 {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
    trainer.executor().input(0, numbers);
    trainer.step(0.1);
    Executor<Threads, under_test::Device> executor(evaluated, world, parameters);
    executor.input(0, std::span(numbers).first(program::input_elements(evaluated)));  // of one micro-batch
    executor.run();
    const double seen = executor.output_scalar(0);
    if (world.rank() == 0) result = seen;
  });
  return result;
}

/// What is said to rank 0 when parameters of one program are given to another.
std::string said(const OwnedPlan& of, const OwnedPlan& to) {
  try {
    under_test::Parameters(of, 0, 3).data(to, 0);
  } catch (const CannotRun& refused) {
    return refused.what();
  }
  return "";
}
std::string said(const Graph& of, const Graph& to, const Mesh& mesh) {
  return said(plan_of(of, mesh, 0), plan_of(to, mesh, 0));
}
std::string differ(const std::string& one, const std::string& other) {
  return "parameters of one program are given to another that cuts the model differently: " + one + ", and " + other +
         "; name the same mesh and schedule (Pipelined) in both, store parameters alike (Stored, AllStored) and cut neither by cost (Balanced), or make parameters from this program's plan";
}

const Graph train = build<Train>(), evaluate = build<Evaluate>();
const Graph train_in_chunks = with_schedule(train, schedules::interleaved<2>),
            evaluate_in_chunks = with_schedule(evaluate, schedules::interleaved<2>);

}  // namespace

TEST_CASE("programs that cut the model alike share its parameters") {
  const double one = loss(train, evaluate, Mesh{stage = 1});
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 4}}) {
    INFO(text(mesh));
    CHECK(loss(train, evaluate, mesh) == doctest::Approx(one).epsilon(1e-12));
    CHECK(loss(train_in_chunks, evaluate_in_chunks, mesh) == doctest::Approx(one).epsilon(1e-12));
  }
  CHECK(loss(train_in_chunks, evaluate, Mesh{stage = 1}) == one);  // on one stage there are no chunks
}
TEST_CASE("layers in chunks and layers in one piece") {
  CHECK_THROWS_AS(loss(train_in_chunks, evaluate, Mesh{stage = 2}), CannotRun);
  CHECK_THROWS_AS(loss(train, evaluate_in_chunks, Mesh{stage = 4}), CannotRun);
  CHECK(said(train_in_chunks, evaluate, Mesh{stage = 2}) ==
        differ("layers 0-1,4-5 on stage 0", "layers 0-3 on stage 0"));
  CHECK(said(train, evaluate_in_chunks, Mesh{stage = 4}) == differ("layers 0-1 on stage 0", "layers 0,4 on stage 0"));
}
TEST_CASE("layers that are cut by cost and layers that are cut evenly") {
  Graph balanced = train, evaluate_balanced = evaluate;
  balanced.balanced = evaluate_balanced.balanced = true;
  CHECK_THROWS_AS(loss(balanced, evaluate, Mesh{stage = 2}), CannotRun);
  CHECK(said(balanced, evaluate, Mesh{stage = 2}) == differ("layers 0-5 on stage 0", "layers 0-3 on stage 0"));
  // Forward alone costs other shares than a step. Where both are cut alike, they share.
  CHECK(loss(balanced, evaluate_balanced, Mesh{stage = 2}) ==
        doctest::Approx(loss(train, evaluate, Mesh{stage = 1})).epsilon(1e-12));
  CHECK(said(balanced, evaluate_balanced, Mesh{stage = 4}) == differ("layers 0-1 on stage 0", "layers 0-2 on stage 0"));
}
TEST_CASE("another mesh, another model") {
  const OwnedPlan trained = plan_of(train, Mesh{stage = 2}, 0);
  CHECK(said(trained, plan_of(train, Mesh{stage = 4}, 0)) == differ("stage=2", "stage=4"));
  CHECK(said(trained, plan_of(train, Mesh{data = 1, stage = 2}, 0)).empty());  // an axis of one rank splits nothing
  CHECK(said(trained, plan_of(build<Evaluation<Layers<depth / stage, Block>, X>>(), Mesh{stage = 2}, 0)) ==
        differ("blocks.*.w f64[8/stage, 4, 4]", "*.w f64[8/stage, 4, 4]"));
}
/// What a model is beside its loss, in a struct around it.
struct Watched {
  Model model;
  constexpr auto operator()(Distributed auto x) const { return model(x) + mean(square(model.out)); }
};
struct Twice {
  Watched watched;
  constexpr auto operator()(Distributed auto x) const { return watched.model(x); }
};
struct More {
  Model model;
  Parameter<double, Shape<width>> gain{ones};
  constexpr auto operator()(Distributed auto x) const { return model(x * gain); }
};
TEST_CASE("a wrapper has the parameters of what it wraps, either way") {
  const Graph watched = build<Evaluation<Watched, X>>(), twice = build<Evaluation<Twice, X>>(),
              train_watched = build<Accumulate<micro_batches, Training<Watched, AdamW, X>>>(),
              more = build<Evaluation<More, X>>();
  for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{data = 2}, Mesh{stage = 2}, Mesh{data = 2, stage = 2}}) {
    INFO(text(mesh));
    CHECK(loss(train, twice, mesh) == loss(train, evaluate, mesh));
    CHECK(loss(train, watched, mesh) > loss(train, evaluate, mesh));
    CHECK(loss(train_watched, evaluate, mesh) == loss(train_watched, twice, mesh));
  }
  CHECK(said(train, more, Mesh{stage = 2}) ==
        differ("blocks.*.w f64[8/stage, 4, 4]", "model.blocks.*.w f64[8/stage, 4, 4]"));
}
TEST_CASE("whole tensors are not read and written by another plan") {
  const OwnedPlan trained = plan_of(train, Mesh{stage = 2}, 0), chunks = plan_of(train_in_chunks, Mesh{stage = 2}, 0);
  under_test::Parameters parameters(trained, 0, 3);
  std::vector<double> whole(depth * width * width);
  parameters.get(trained, 0, "blocks.*.w", whole);
  CHECK_THROWS_AS(parameters.get(chunks, 0, "blocks.*.w", whole), CannotRun);
  CHECK_THROWS_AS(parameters.set(chunks, 0, "blocks.*.w", whole), CannotRun);
}
