// Trains the GPT of pipeline_models.hpp by a schedule on the ranks of any communicator.
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>

#include "pipeline_models.hpp"
#include "program.hpp"

namespace pipelines {
using namespace parallel::internals;

inline constexpr int steps = 10, micro_batches = 8;

template <class Model>
using Trained = Accumulate<micro_batches, Training<Model, AdamW, Tokens, Tokens, Tokens>>;
template <class T>
using Train = Trained<Gpt<T, layers / stage, context>>;
template <class T>
using Alone = Trained<Gpt<T, layers>>;

inline const Schedule* const synchronous[] = {
    &schedules::naive,          &schedules::gpipe,          &schedules::one_forward_one_backward,
    &schedules::interleaved<2>, &schedules::zero_bubble_h1, &schedules::zero_bubble_h2};

inline OwnedPlan plan_of(const Graph& graph, const Mesh& mesh, int rank) {
  return derive(graph, mesh.on_stage(mesh.coordinate(rank, &stage)), {}, {});
}

/// Gives a rank its inputs: tokens, a padding that hides a quarter of them, targets.
template <class Executor>
void feed(Executor& executor) {
  constexpr std::int64_t count = std::int64_t{micro_batches} * batch * context;
  const auto tokens = program::numbers<int>(count, 1, vocabulary),
             targets = program::numbers<int>(count, 2, vocabulary);
  auto padding = program::numbers<int>(count, 3, 4);
  for (int& p : padding) p = p > 0 ? 1 : 0;
  executor.input(0, tokens);
  executor.input(1, padding);
  executor.input(2, targets);
}

/// The losses and gradient norms of ten steps, as one rank sees them.
template <Communicator World>
std::vector<double> train(World& world, const Graph& graph, const Mesh& mesh) {
  const OwnedPlan plan = plan_of(graph, mesh, world.rank());
  under_test::Parameters parameters(plan, world.rank(), 5);
  Trainer<World, under_test::Device> trainer(plan, world, parameters,
                                             {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 3);
  feed(trainer.executor());
  std::vector<double> result;
  for (int step = 0; step < steps; ++step) {
    const StepResult r = trainer.step(1e-2);
    result.push_back(r.loss);
    result.push_back(r.gradient_norm);
  }
  return result;
}
/// The same on thread ranks. All ranks see the same.
inline std::vector<double> losses(const Graph& graph, const Mesh& mesh) {
  std::vector<std::vector<double>> seen(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(),
              [&](Threads& world) { seen[static_cast<std::size_t>(world.rank())] = train(world, graph, mesh); });
  for (const auto& other : seen) CHECK(other == seen[0]);
  return seen[0];
}
/// Gradients change more than the losses that they lead to.
inline void check_losses(const std::vector<double>& many, const std::vector<double>& one, double tolerance) {
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(many[i] == doctest::Approx(one[i]).epsilon(i % 2 == 0 ? tolerance : 10 * tolerance));
}

}  // namespace pipelines
