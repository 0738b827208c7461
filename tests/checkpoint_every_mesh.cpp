// A training that is kept on any mesh up to eight ranks, stored in some way, goes on there with the same bits, and
// correctly on one rank and on the next mesh, stored in another way; and there from one rank.
#include "every_mesh.hpp"
#include "kept.hpp"

namespace {

using namespace every_mesh;

/// Losses up to a step, after going on from what the folder has; saves behind `save_behind` steps. Those of all ranks
/// are alike.
std::vector<double> train(const Graph& graph, const Mesh& mesh, const std::string& folder, int steps, int save_behind) {
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

template <int factor, Dim layers>
void check_kept(const std::vector<Mesh>& all) {
  constexpr int saved = 2, steps = 4;
  const std::vector<Graph> stored = stages<every_mesh::Step<factor, layers, Context::gathered, Order::contiguous, 1>>();
  const Mesh alone{data = 1};
  const kept::Folder of_one, nothing;
  const std::vector<double> one = train(stored[0], alone, of_one.path, steps, saved), rest = kept::behind(one, saved);
  CHECK(rest[0] != one[0]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(way[i % 4] << " on " << text(all[i]));
    const Graph& graph = stored[i % 4];
    const kept::Folder folder;
    const std::vector<double> losses = train(graph, all[i], folder.path, steps, saved);
    check_near(losses, one);
    CHECK(train(graph, all[i], folder.path, steps, 0) == kept::behind(losses, saved));
    check_near(train(stored[0], alone, folder.path, steps, 0), rest);
    check_near(train(stored[(i + 1) % 4], all[(i + 1) % all.size()], folder.path, steps, 0), rest);
    check_near(train(graph, all[i], of_one.path, steps, 0), rest);
  }
}

}  // namespace

TEST_CASE("on all meshes of 2, 4 and 8 ranks") {
  check_kept<8, 2>(meshes({2, 4, 8}, [](const Mesh& mesh) { return !staged(mesh); }));
  check_kept<8, 8 / stage>(meshes({2, 4, 8}, staged));
}
TEST_CASE("on all meshes of 3 and 6 ranks") {
  check_kept<6, 6 / stage>(meshes({2, 3, 6}, [](const Mesh& mesh) { return mesh.ranks() % 3 == 0; }));
}
TEST_CASE("on all meshes of 5 and of 7 ranks") {
  const auto several = [](const Mesh& mesh) { return mesh.ranks() > 1; };
  check_kept<5, 5 / stage>(meshes({5}, several));
  check_kept<7, 7 / stage>(meshes({7}, several));
}
