// Ten steps of a training on a mesh of thread ranks: the losses that every rank sees.
#pragma once
#include <doctest/doctest.h>

#include "program.hpp"

namespace ten_steps {

using namespace parallel;
using namespace parallel::internals;

/// Gives every input its first numbers, the same on all meshes.
template <class Executor>
void set_inputs(const Plan& plan, Executor& executor) {
  int position = 0;
  for (const Member& m : plan.graph.members)
    if (m.role == Role::input) {
      const auto of = program::numbers<double>(m.type.layout.elements(), static_cast<std::uint64_t>(position + 1));
      if (m.type.dtype == DType::bf16)
        executor.input(position, std::vector<bfloat16>(of.begin(), of.end()));
      else if (m.type.dtype == DType::f32)
        executor.input(position, std::vector<float>(of.begin(), of.end()));
      else if (m.type.dtype == DType::f16)
        executor.input(position, std::vector<float16>(of.begin(), of.end()));
      else
        executor.input(position, of);
      ++position;
    }
}

/// Losses of ten steps with the first numbers of every input. Whether all ranks see the same, and whether what several
/// hold alike is alike at the end, is checked.
template <class Optimizer = AdamW>
std::vector<double> losses(const Graph& graph, const Mesh& mesh, const typename Optimizer::Hyperparameters& numbers) {
  std::vector<std::vector<double>> seen(static_cast<std::size_t>(mesh.ranks()));
  const bool replicated = graph.stages == nullptr || mesh.extent(graph.stages) == 1;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive(
        graph, graph.stages == nullptr ? mesh : mesh.on_stage(mesh.coordinate(world.rank(), graph.stages)), {}, {});
    under_test::Parameters parameters(*plan, world.rank(), 5);
    Trainer<Threads, under_test::Device> trainer(*plan, world, parameters, numbers, 3);
    set_inputs(*plan, trainer.executor());
    for (int step = 0; step < 10; ++step)
      seen[static_cast<std::size_t>(world.rank())].push_back(trainer.step(1e-2).loss);
    if (replicated) compare_replicas(world, trainer.executor());
  });
  for (const auto& other : seen) CHECK(other == seen[0]);
  return seen[0];
}
inline std::vector<double> losses(const Graph& graph, const Mesh& mesh, double clip_norm = 0) {
  return losses<AdamW>(graph, mesh, {.weight_decay = 0.1, .clip_norm = clip_norm});
}
inline void check_near(const std::vector<double>& many, const std::vector<double>& one) {
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(1e-10));
}

}  // namespace ten_steps
