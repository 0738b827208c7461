// Trainings of tests/every_mesh.hpp that are kept, and go on.
#pragma once
#include "every_mesh.hpp"
#include "kept.hpp"

namespace every_mesh {

/// Losses up to a step, after going on from what the folder has; saves behind `save_behind` steps. Those of all ranks
/// are alike.
inline std::vector<double> train(const Graph& graph, const Mesh& mesh, const std::string& folder, int steps,
                                 int save_behind) {
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive(
        graph, graph.stages == nullptr ? mesh : mesh.on_stage(mesh.coordinate(world.rank(), graph.stages)), {}, {});
    Parameters parameters(*plan, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(*plan, world, parameters, Momentum::Hyperparameters{.weight_decay = 0.1}, 3);
    Checkpoints checkpoints(world, folder);
    const Resumed from = checkpoints.resume(step.executor());
    ten_steps::set_inputs(*plan, step.executor());
    for (std::int64_t i = from.step; i < steps; ++i) {
      losses[static_cast<std::size_t>(world.rank())].push_back(step.step(1e-2).loss);
      if (i + 1 == save_behind) checkpoints.save(step.executor(), i + 1);
    }
  });
  for (const auto& other : losses) CHECK(other == losses[0]);
  return losses[0];
}

}  // namespace every_mesh
