// The network of tests/fixtures/optimizers.fixture, and its ten steps by any optimizer on a mesh of thread ranks.
#pragma once
#include <doctest/doctest.h>

#include "fixture.hpp"
#include "program.hpp"

namespace optimizer_network {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

template <class T>
struct Block {
  Parameter<T, Shape<8>> gain{without_decay(normal(0.3))};
  Parameter<T, Shape<8, 20 / tensor>> up{normal(0.3)};
  Parameter<T, Shape<20 / tensor>> bias{zeros};
  Parameter<T, Shape<20 / tensor, 8>> down{normal(0.3)};
  Parameter<T, Shape<8, 2, 4 / tensor>> mix{normal(0.3)};
  Parameter<T, Shape<2, 4 / tensor, 8>> back{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + matmul(tanh(matmul(x * gain, up) + bias), down);
    return y + matmul<2>(tanh(matmul(y, mix)), back);
  }
};
template <Dim layers, class T>
struct Network {
  Parameter<T, Shape<6, 8>> in{normal(0.3)};
  Layers<layers, Block<T>> blocks;
  Parameter<T, Shape<8>> shift{zeros};
  Parameter<T, Shape<8, 4>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)) + shift, out) - y));
  }
};
template <class T, int rows = 12>
using X = Tensor<T, Shape<rows / data, 6>>;
template <class T, int rows = 12>
using Y = Tensor<T, Shape<rows / data, 4>>;
template <class Optimizer, class T = double, int rows = 12>
using Whole = Training<Network<3, T>, Optimizer, X<T, rows>, Y<T, rows>>;
template <class Optimizer>
using Staged = Training<Network<3 / stage, double>, Optimizer, X<double>, Y<double>>;
template <class Optimizer>
using StagedTwice = Accumulate<2, Training<Network<3 / stage, double>, Optimizer, X<double, 6>, Y<double, 6>>>;

struct Trained {
  std::vector<double> losses{};
  std::map<std::string, std::vector<double>> parameters{};
};
template <class T = double, class Hyperparameters>
Trained trained(const Graph& graph, const Mesh& mesh, const Hyperparameters& numbers) {
  Trained all;
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(mesh.ranks()));
  const bool replicated = graph.stages == nullptr || mesh.extent(graph.stages) == 1;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive(
        graph, graph.stages == nullptr ? mesh : mesh.on_stage(mesh.coordinate(world.rank(), graph.stages)), {}, {});
    const auto is_here = [&](const Member& m) {
      return m.role == Role::parameter && plan->storage[static_cast<std::size_t>(m.value)].block != MemoryBlock::none;
    };
    under_test::Parameters parameters(*plan, world.rank(), 5);
    for (const Member& m : plan->graph.members) {
      const std::string path(plan->graph.path(m));
      if (is_here(m)) parameters.set(*plan, world.rank(), path, fixture().values<T>("parameter/" + path));
    }
    Trainer<Threads, under_test::Device> trainer(*plan, world, parameters, numbers, 3);
    trainer.executor().input(0, fixture().values<T>("input/x"));
    trainer.executor().input(1, fixture().values<T>("input/y"));
    for (int step = 0; step < 10; ++step) losses[static_cast<std::size_t>(world.rank())].push_back(trainer.step().loss);
    if (replicated) compare_replicas(world, trainer.executor());
    for (int rank = 0; rank < world.size(); ++rank, world.barrier())  // one after the other, as several have the same
      if (rank == world.rank())
        for (const Member& m : plan->graph.members) {
          if (!is_here(m)) continue;
          const std::string path(plan->graph.path(m));
          std::vector<double>& to = all.parameters[path];
          std::vector<T> some(to.begin(), to.end());
          some.resize(static_cast<std::size_t>(m.type.layout.elements()));
          parameters.get(*plan, rank, path, some);
          to.assign(some.begin(), some.end());
        }
  });
  for (const auto& other : losses) CHECK(other == losses[0]);
  all.losses = losses[0];
  return all;
}
/// Whether they are those of a case of the fixture.
inline void check_like(const Trained& actual, const std::string& name, double tolerance) {
  const auto near = [&](const std::vector<double>& values, const std::vector<double>& expected) {
    REQUIRE(values.size() == expected.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])));
  };
  near(actual.losses, fixture().values<double>(name + "/losses"));
  CHECK(actual.parameters.size() == 9);
  for (const auto& parameter : actual.parameters) {
    const std::string& path = parameter.first;
    CAPTURE(path);
    near(parameter.second, fixture().values<double>(name + "/final/" + path));
  }
}

}  // namespace optimizer_network
