// Pipelines: the losses of ten training steps on stages are those of one rank, for every synchronous schedule.
#include <doctest/doctest.h>

#include "pipeline_models.hpp"
#include <parallel/device/cpu.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr int steps = 10, micro_batches = 8;

/// The losses and gradient norms of ten steps on thread ranks.
template <class Step>
std::vector<double> losses(const Mesh& mesh) {
  using namespace pipelines;
  constexpr std::int64_t count = std::int64_t{micro_batches} * batch * context;
  const auto tokens = program::numbers<int>(count, 1, vocabulary), targets = program::numbers<int>(count, 2, vocabulary);
  auto padding = program::numbers<int>(count, 3, 4);
  for (int& p : padding) p = p > 0 ? 1 : 0;
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Step>(mesh, world.rank());
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
template <class Step>
void check(const Mesh& mesh, const std::vector<double>& one, double tolerance) {
  INFO(text(mesh));
  const std::vector<double> many = losses<Step>(mesh);
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(tolerance));
}

template <class T, Dim positions = pipelines::context>
using Train = Accumulate<micro_batches, Training<pipelines::Gpt<T, pipelines::layers / stage, positions>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
template <class T>
using Alone = Accumulate<micro_batches, Training<pipelines::Gpt<T, pipelines::layers>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;

}  // namespace

TEST_CASE("1F1B computes what one rank computes") {
  const std::vector<double> one = losses<Alone<double>>(Mesh{data = 1});
  CHECK(one[0] > 1);
  CHECK(one[2 * steps - 2] < one[0]);
  check<Train<double>>(Mesh{stage = 1}, one, 1e-10);
  check<Train<double>>(Mesh{stage = 2}, one, 1e-10);
  check<Train<double>>(Mesh{stage = 4}, one, 1e-10);
}
