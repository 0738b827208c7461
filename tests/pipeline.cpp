// Pipelines: the losses of ten training steps on stages are those of one rank, for every synchronous schedule.
#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::axes;
using namespace pipelines;

TEST_CASE("a step whose gradient norm is no finite number is skipped on every stage") {
  const Graph graph = build<Train<double>>();
  const Mesh mesh{stage = 2, data = 2};
  for (const Schedule* schedule : synchronous) {
    INFO(schedule->name);
    const Graph program = with_schedule(graph, *schedule);
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = plan_of(program, mesh, world.rank());
      Parameters parameters(plan, world.rank(), 5);
      Trainer<Threads, CpuDouble> trainer(plan, world, parameters, Hyperparameters{}, 3);
      feed(trainer.executor());
      const auto step = [&](double bias, std::size_t layer) {  // says whether anything of this rank has changed
        std::vector<double> whole(layers * channels, 0);
        whole[layer * channels] = bias;
        parameters.set(plan, world.rank(), "blocks.*.bias", whole.data());
        const auto held = [&] {
          std::vector<std::byte> all;
          for (const Segment s : {Segment::parameter, Segment::state}) {
            for (std::size_t i = 0; i < plan->graph.members.size(); ++i) {
              const View v = trainer.executor().member(static_cast<int>(i));
              const auto* begin = v.as<std::byte>();
              if (plan->storage[static_cast<std::size_t>(plan->graph.members[i].value)].block == s) all.insert(all.end(), begin, begin + v.elements() * bytes_of(v.dtype));
            }
          }
          return all;
        };
        const auto before = held();
        return std::pair{trainer.step(1e-2), before != held()};
      };
      for (const std::size_t layer : {std::size_t{0}, std::size_t{layers - 1}}) {  // the number is on one stage only
        const auto [infinite, changed] = step(std::numeric_limits<double>::infinity(), layer);
        CHECK(infinite.skipped);
        CHECK_FALSE(std::isfinite(infinite.gradient_norm));
        CHECK_FALSE(changed);
        const auto [finite, updated] = step(0, layer);
        CHECK_FALSE(finite.skipped);
        CHECK(std::isfinite(finite.loss));
        CHECK(updated);
      }
    });
  }
}

TEST_CASE("every synchronous schedule computes what one rank computes") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  CHECK(one[0] > 1);
  CHECK(one[2 * steps - 2] < one[0]);
  const Graph graph = build<Train<double>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}, Mesh{data = 2, stage = 2, tensor = 2},
                             Mesh{stage = 4, data = 2}}) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, 1e-10);
    }
}
