// Pipelines over MPI: the same losses, bit for bit, as thread ranks give; and each process holds its own stage only,
// measured.
#include <cstdio>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

namespace {

/// Bytes of this process that are in memory.
std::int64_t resident() {
  std::int64_t pages = 0, unused = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  REQUIRE(std::fscanf(file, "%ld %ld", &unused, &pages) == 2);
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

constexpr int wide = 512, deep = 32;
struct Large {
  Parameter<float, Shape<wide, wide>> w{normal(0.02)};
  constexpr auto operator()(Distributed auto x) const { return x + gelu(matmul(x, w)); }
};
struct Deep {
  Layers<deep / stage, Large> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
using Vectors = Tensor<float, Shape<2, wide>>;

template <class T>
void check_losses_over_mpi(const std::vector<Mesh>& of_four) {
  Mpi world;
  const Graph graph = build<Train<T>>();
  std::vector<Mesh> meshes;
  if (world.size() == 2) meshes = {Mesh{stage = 2}};
  if (world.size() == 4) meshes = of_four;
  REQUIRE(!meshes.empty());
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : meshes) {
      INFO(schedule->name << " on " << text(mesh));
      const std::vector<double> seen = train(world, with_schedule(graph, *schedule), mesh);
      if (world.rank() == 0) CHECK(seen == losses(with_schedule(graph, *schedule), mesh));
    }
}

}  // namespace

TEST_CASE("the losses over MPI are those of thread ranks, bit for bit, in double") {
  check_losses_over_mpi<double>({Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}});
}
TEST_CASE("the losses over MPI are those of thread ranks, bit for bit, in float") {
  check_losses_over_mpi<float>({Mesh{stage = 2, data = 2}});
}

TEST_CASE("the process of a stage has memory for its own layers only") {
  Mpi world;
  const Graph graph = build<Accumulate<4, Training<Deep, AdamW, Vectors>>>();
  const Mesh mesh{stage = world.size()};
  const std::int64_t before = resident();
  const OwnedPlan plan = plan_of(graph, mesh, world.rank());
  Parameters parameters(plan, world.rank(), 5);
  Trainer<Mpi, Cpu> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 3);
  const auto x = program::numbers<float>(4 * 2 * wide, 1);
  trainer.executor().input(0, x);
  trainer.step(1e-3);
  const std::int64_t grown = resident() - before, whole = derive(graph, Mesh{stage = 1}, {}, {})->peak_memory();
  INFO("rank " << world.rank() << ": " << grown << " bytes, the plan says " << plan->peak_memory()
               << ", the whole model needs " << whole);
  CHECK(whole > std::int64_t{4} * 4 * deep * wide * wide);  // parameters, gradients, two moments
  CHECK(grown > plan->peak_memory() * 9 / 10);
  CHECK(grown < plan->peak_memory() + whole / 8);
}
