// Gradients that are added up in halves: over MPI the bits of thread ranks, of programs whose sums are known and of a
// training.
#include <cmath>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "sums.hpp"

using namespace sums;

namespace {

template <class T>
struct Residual {
  Parameter<T, Shape<width, 2 * width / tensor>> up{normal(0.3)};
  Parameter<T, Shape<2 * width / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
template <class T>
struct Network {
  Parameter<T, Shape<width>> first{ones};
  Layers<layers, Residual<T>> all;
  constexpr auto operator()(Distributed auto x) const { return mean(square(cast<float>(all(cast<T>(x) * first)))); }
};
template <class T>
using Trained = Accumulate<2, Training<Network<T>, AdamW, Tensor<float, Shape<examples / data, width>>>>;

/// Losses and norms of five steps.
template <class World>
std::vector<double> steps(World& world, const Graph& graph, const Mesh& mesh) {
  const OwnedPlan plan = derive(graph, mesh, {}, {});
  under_test::Parameters parameters(*plan, world.rank(), 1);
  Trainer<World, under_test::Device> trainer(*plan, world, parameters, {.clip_norm = 1}, 1);
  trainer.executor().input(0, program::numbers<float>(2 * examples * width, 3));
  std::vector<double> seen;
  for (int i = 0; i < 5; ++i) {
    const StepResult r = trainer.step(1e-2);
    seen.push_back(r.loss);
    seen.push_back(r.gradient_norm);
  }
  return seen;
}
template <class Program>
void check_training(Mpi& world, const Mesh& mesh, double exact) {
  const Graph graph = build<Program>();
  const std::vector<double> seen = steps(world, graph, mesh);
  std::vector<double> threads;
  run_threads(mesh.ranks(), [&](Threads& t) {
    const std::vector<double> all = steps(t, graph, mesh);
    if (t.rank() == world.rank()) threads = all;
  });
  CHECK(seen == threads);
  CHECK(seen[0] == doctest::Approx(exact).epsilon(0.02));
}

}  // namespace

TEST_CASE("over MPI as by threads") {
  Mpi world;
  for (const Mesh& mesh : meshes) {
    if (mesh.ranks() != world.size()) continue;
    each_program([&](const Words& words, const Graph& graph) {
      INFO(name_of(words.accumulated) << ", " << name_of(words.reduced) << ", stage " << words.stage << ", "
                                      << text(mesh));
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      const std::vector<lockstep::Array> whole = program::outputs(*plan, feed);
      std::vector<lockstep::Array> part = program::empty_outputs(*plan);
      for (auto& array : part)
        for (double& x : array.data) x = std::nan("");
      program::run_rank(*plan, world, feed, part);
      int found = 0;
      for (std::size_t o = 0; o < whole.size(); ++o)
        for (std::size_t i = 0; i < whole[o].data.size(); ++i)
          if (!std::isnan(part[o].data[i])) {
            ++found;
            REQUIRE(part[o].data[i] == whole[o].data[i]);
          }
      CHECK(found >= 2 + (1 + layers) * width / world.size());
    });
    std::vector<double> exact;
    run_threads(mesh.ranks(), [&](Threads& t) {
      const std::vector<double> all = steps(t, build<Trained<float>>(), mesh);
      if (t.rank() == world.rank()) exact = all;
    });
    check_training<SumsIn<Trained<float>, Reduced<bfloat16>>>(world, mesh, exact[0]);
    check_training<SumsIn<Trained<bfloat16>, Activations<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>>(
        world, mesh, exact[0]);
    check_training<LossScaled<SumsIn<Trained<float16>, Activations<float16>, Reduced<float16>>>>(world, mesh, exact[0]);
    check_training<AllStored<LossScaled<SumsIn<Trained<float16>, Accumulated<bfloat16>>>, Stored<data>>>(world, mesh,
                                                                                                         exact[0]);
  }
}
