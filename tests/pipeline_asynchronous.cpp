// PipeDream: what runs is its definition, written here as one rank that keeps old weights.
//
// Stage s of p has p - s - 1 micro-batches ahead, so micro-batch j goes forward and back through it with the weights
// after max(0, j - (p - s - 1)) updates. Each stage updates its newest weights by the gradient at those.
#include <map>

#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int width = 6, depth = 4, rows = 4, micro_batches = 7;

template <Dim layers>
struct Model {
  struct Block {
    Parameter<double, Shape<width, width>> w{normal(0.4)};
    Parameter<double, Shape<width>> b{zeros};
    constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(x, w) + b); }
  };
  Parameter<double, Shape<5, width>> in{normal(0.4)};
  Layers<layers, Block> blocks;
  Parameter<double, Shape<width, 3>> out{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};
using X = Tensor<double, Shape<rows / data, 5>>;
using Y = Tensor<double, Shape<rows / data, 3>>;
template <class Model>
using Step = Training<Model, Momentum, X, Y>;
using Gradients = Training<Model<depth>, KeepGradients, X, Y>;

constexpr double rate = 1.0 / 64, momentum = 0.5;  // powers of two: their products are exact, fused with a sum or not
const std::vector<std::string> names{"in", "blocks.*.w", "blocks.*.b", "out"};
const std::map<std::string, std::size_t> sizes{
    {"in", 5 * width}, {"blocks.*.w", depth* width* width}, {"blocks.*.b", depth* width}, {"out", width * 3}};
using Weights = std::map<std::string, std::vector<double>>;

const std::vector<double> x = program::numbers<double>(micro_batches * rows * 5, 1),
                          y = program::numbers<double>(micro_batches * rows * 3, 2);

/// The gradients of one micro-batch at some weights, and its share of the loss. On so many ranks as add up the gradient
/// when stages do.
double gradients(const Weights& at, int j, int ranks, Weights& result) {
  const OwnedPlan plan = derive<Gradients>(Mesh{data = ranks});
  double share = 0;
  run_threads(ranks, [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    for (const std::string& n : names) parameters.set(plan, world.rank(), n, at.at(n));
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    executor.scalar("clip_norm", 0);
    executor.input(0, std::span(x).subspan(static_cast<std::size_t>(j) * rows * 5, rows * 5));
    executor.input(1, std::span(y).subspan(static_cast<std::size_t>(j) * rows * 3, rows * 3));
    executor.run();
    if (world.rank() != 0) return;
    share = executor.output_scalar(0) * (1.0 / micro_batches);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<std::byte> room;
      const View g = executor.on_host(executor.output(static_cast<int>(i) + 2), room);
      result[names[i]].assign(g.as<double>(), g.as<double>() + g.elements());
    }
  });
  return share;
}

/// The stage that has an element.
int stage_of(const std::string& name, std::size_t i, int stages) {
  if (name == "in") return 0;
  if (name == "out") return stages - 1;
  return static_cast<int>(i / (sizes.at(name) / depth)) / (depth / stages);
}

/// Some steps of so many micro-batches each, by the definition.
Weights defined(int stages, int ranks, int steps, std::vector<double>& losses) {
  Weights newest, moments;
  run_threads(1, [&](Threads&) {
    const OwnedPlan plan = derive<Gradients>(Mesh{data = 1});
    under_test::Parameters parameters(plan, 0, 5);
    for (const std::string& n : names) {
      newest[n].resize(sizes.at(n));
      parameters.get(plan, 0, n, newest[n]);
    }
  });
  for (const std::string& n : names) moments[n].assign(sizes.at(n), 0);
  for (int step = 0; step < steps; ++step) {
    std::vector<Weights> versions{newest};  // after 0, 1, ... updates of this step
    double loss = 0;
    for (int j = 0; j < micro_batches; ++j) {
      Weights seen = newest, gradient;
      for (const std::string& n : names)
        for (std::size_t i = 0; i < sizes.at(n); ++i)
          seen[n][i] = versions[static_cast<std::size_t>(std::max(0, j - (stages - stage_of(n, i, stages) - 1)))][n][i];
      loss += gradients(seen, j, ranks, gradient);
      for (const std::string& n : names)
        for (std::size_t i = 0; i < sizes.at(n); ++i) {
          moments[n][i] = momentum * moments[n][i] + gradient[n][i];
          newest[n][i] -= rate * moments[n][i];
        }
      versions.push_back(newest);
    }
    losses.push_back(loss);
  }
  return newest;
}

/// The same by the plan, on thread ranks.
Weights run(const Mesh& mesh, int steps, std::vector<double>& losses) {
  Weights result;
  for (const std::string& n : names) result[n].resize(sizes.at(n));
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan =
        derive<Pipelined<schedules::pipedream, Accumulate<micro_batches, Step<Model<depth / stage>>>>>(mesh,
                                                                                                       world.rank());
    under_test::Parameters parameters(plan, world.rank(), 5);
    const Momentum::Hyperparameters numbers{.momentum = momentum};
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, numbers, 3);
    trainer.executor().input(0, x);
    trainer.executor().input(1, y);
    for (int step = 0; step < steps; ++step) {
      const double loss = trainer.step(rate).loss;
      if (world.rank() == 0) losses.push_back(loss);
    }
    for (int rank = 0; rank < world.size(); ++rank, world.barrier())  // one after the other, as several have the same
      for (const std::string& n : names)
        if (rank == world.rank()) parameters.get(plan, rank, n, result[n]);
  });
  return result;
}

void check(const Mesh& mesh) {
  INFO(text(mesh));
  std::vector<double> expected_losses, losses;
  const int ranks = mesh.extent(&data);
  const Weights expected = defined(mesh.extent(&stage), ranks, 3, expected_losses), weights = run(mesh, 3, losses);
  CHECK(weights == expected);
  if (ranks == 1) CHECK(losses == expected_losses);
  REQUIRE(losses.size() == 3);  // ranks add up their own micro-batches' losses first, the definition those of all ranks
  for (std::size_t i = 0; i < 3; ++i) CHECK(losses[i] == doctest::Approx(expected_losses[i]).epsilon(1e-14));
}

}  // namespace

TEST_CASE("PipeDream computes its definition") {
  check(Mesh{stage = 1});
  check(Mesh{stage = 2});
  check(Mesh{stage = 4});
  check(Mesh{stage = 4, data = 2});
}
TEST_CASE("stages that wait less see older weights") {
  std::vector<double> two, four;
  CHECK(defined(2, 1, 1, two).at("in") != defined(4, 1, 1, four).at("in"));
}
