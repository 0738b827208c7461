// Pipelines: the losses of ten training steps on stages are those of one rank, for every synchronous schedule.
#include <doctest/doctest.h>

#include "pipeline_models.hpp"
#include <parallel/device/cpu.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr int steps = 10, micro_batches = 8;

/// The program with another schedule: the same graph as `Pipelined<schedule, Step>` has.
Graph with(Graph graph, const Schedule& schedule) {
  graph.schedule = &schedule;
  graph.chunks = schedule.chunks;
  for (Node& n : graph.nodes)
    if (n.transition.along != 0) n.transition.chunks = schedule.chunks;
  return graph;
}
/// The losses and gradient norms of ten steps on thread ranks.
std::vector<double> losses(const Graph& graph, const Mesh& mesh) {
  using namespace pipelines;
  constexpr std::int64_t count = std::int64_t{micro_batches} * batch * context;
  const auto tokens = program::numbers<int>(count, 1, vocabulary), targets = program::numbers<int>(count, 2, vocabulary);
  auto padding = program::numbers<int>(count, 3, 4);
  for (int& p : padding) p = p > 0 ? 1 : 0;
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive(graph, mesh.on_stage(mesh.coordinate(world.rank(), &stage)), {}, {});
    Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, CpuDouble> trainer(plan, world, parameters, Hyperparameters{}, 3);
    for (int step = 0; step < steps; ++step) {
      trainer.executor().input(0, tokens.data()), trainer.executor().input(1, padding.data()), trainer.executor().input(2, targets.data());
      const StepResult r = trainer.step(1e-2);
      if (world.rank() == 0) result.push_back(r.loss), result.push_back(r.gradient_norm);
    }
  });
  return result;
}
void check(const Graph& graph, const Mesh& mesh, const std::vector<double>& one, double tolerance) {
  INFO(graph.schedule->name << " on " << text(mesh));
  const std::vector<double> many = losses(graph, mesh);
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(tolerance));
}

const Schedule* const synchronous[] = {&schedules::naive, &schedules::gpipe, &schedules::one_forward_one_backward, &schedules::interleaved<2>,
                                       &schedules::zero_bubble_h1, &schedules::zero_bubble_h2};

template <class T, Dim positions = pipelines::context>
using Train = Accumulate<micro_batches, Training<pipelines::Gpt<T, pipelines::layers / stage, positions>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
template <class T>
using Alone = Accumulate<micro_batches, Training<pipelines::Gpt<T, pipelines::layers>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;

}  // namespace

TEST_CASE("every synchronous schedule computes what one rank computes") {
  const std::vector<double> one = losses(build<Alone<double>>(), Mesh{data = 1});
  CHECK(one[0] > 1);
  CHECK(one[2 * steps - 2] < one[0]);
  const Graph graph = build<Train<double>>();
  for (const Schedule* schedule : synchronous)
    for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}, Mesh{data = 2, stage = 2, tensor = 2},
                             Mesh{stage = 4, data = 2}})
      check(with(graph, *schedule), mesh, one, 1e-10);
}
