// Pipelines: the losses of ten training steps on stages are those of one rank, for every synchronous schedule.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "pipeline_training.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace pipelines;

namespace {
/// What outlives a step on this rank: parameters and the optimizer's state.
template <class Executor>
std::vector<std::byte> held(Executor& executor) {
  std::vector<std::byte> all, room;
  for (std::size_t i = 0; i < executor.plan().graph.members.size(); ++i) {
    const View v = executor.on_host(executor.member(static_cast<int>(i)), room);
    if (v.data != nullptr)
      all.insert(all.end(), v.as<std::byte>(), v.as<std::byte>() + v.elements() * bytes_of(v.dtype));
  }
  return all;
}

#if defined(PARALLEL_STAND_IN)  // takes minutes for each
const std::vector<Mesh> meshes{Mesh{stage = 4}, Mesh{data = 2, stage = 2, tensor = 2}};
#else
const std::vector<Mesh> meshes{Mesh{stage = 1},
                               Mesh{stage = 2},
                               Mesh{stage = 4},
                               Mesh{stage = 2, data = 2},
                               Mesh{stage = 2, tensor = 2},
                               Mesh{data = 2, stage = 2, tensor = 2},
                               Mesh{stage = 4, data = 2}};
#endif
template <class T>
void check_every_schedule(double tolerance) {
  const std::vector<double> one = losses(build<Alone<T>>(), Mesh{data = 1});
  CHECK(one[0] > 1);
  CHECK(one[2 * steps - 2] < one[0]);
  const Graph graph = build<Train<T>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : meshes) {
      INFO(schedule->name << " on " << text(mesh));
      check_losses(losses(with_schedule(graph, *schedule), mesh), one, tolerance);
    }
}
}  // namespace

TEST_CASE("a step whose gradient norm is no finite number is skipped on every stage") {
  const Graph graph = build<Train<double>>();
  const Mesh mesh{stage = 2, data = 2};
  for (const Schedule* schedule : synchronous) {
    INFO(schedule->name);
    const Graph program = with_schedule(graph, *schedule);
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = plan_of(program, mesh, world.rank());
      under_test::Parameters parameters(plan, world.rank(), 5);
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters,
                                                   {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 3);
      trainer.on_no_number(NoNumber::skips);
      feed(trainer.executor());
      for (const int layer : {0, layers - 1})  // one stage alone has the number
        for (const double bias : {std::numeric_limits<double>::infinity(), 0.0}) {
          std::vector<double> biases(layers * channels, 0);
          biases[static_cast<std::size_t>(layer * channels)] = bias;
          parameters.set(plan, world.rank(), "blocks.*.bias", biases);
          const std::vector<std::byte> before = held(trainer.executor());
          const StepResult result = trainer.step(1e-2);
          CHECK(result.skipped == (bias != 0));
          CHECK(std::isfinite(result.gradient_norm) == (bias == 0));
          CHECK((held(trainer.executor()) == before) == (bias != 0));
        }
    });
  }
}

TEST_CASE("every synchronous schedule computes what one rank computes, in double") {
  check_every_schedule<double>(1e-10);
}
#if !defined(PARALLEL_STAND_IN)
TEST_CASE("every synchronous schedule computes what one rank computes, in float") { check_every_schedule<float>(1e-5); }
#endif
