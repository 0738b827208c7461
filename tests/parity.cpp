// A GPT of GPT-2's architecture against PyTorch: logits, loss, every gradient, and ten steps of each optimizer, on one
// rank and on four.
#include <doctest/doctest.h>

#include "fixture.hpp"
#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

using Model =
    models::Gpt<float, models::Sizes{.batch = 4, .context = 8, .heads = 4, .size = 4, .vocabulary = 32, .layers = 2}>;

Array array(const std::string& name) {
  const FixtureTensor& t = fixture()[name];
  return {t.sizes, t.values};
}
void give(const Plan& plan, int rank, under_test::Parameters& parameters) {
  for (const Member& m : plan.graph.members)
    if (m.role == Role::parameter)
      parameters.set(plan, rank, plan.graph.path(m),
                     fixture().values<float>("parameter/" + std::string(plan.graph.path(m))));
}

/// Runs a program once with PyTorch's weights and returns its outputs, whole.
template <class Program>
std::vector<Array> run(const Mesh& mesh, int inputs) {
  const OwnedPlan plan = derive<Program>(mesh);
  const std::vector<int> tokens = fixture().values<int>("tokens"), targets = fixture().values<int>("targets");
  return program::outputs(plan, [&](auto& executor, under_test::Parameters& parameters) {
    give(*plan, executor.rank(), parameters);
    executor.input(0, tokens);
    if (inputs > 1) executor.input(1, targets);
    if (executor.reads("clip_norm")) executor.scalar("clip_norm", 0);
  });
}

/// The losses and norms of ten steps on one batch.
template <class Optimizer>
void check_steps(const Mesh& mesh, const typename Optimizer::Hyperparameters& numbers, const std::string& name) {
  using Step = Training<Model, Optimizer, Model::Tokens, Model::Tokens>;
  const OwnedPlan plan = derive<Step>(mesh);
  const std::vector<int> tokens = fixture().values<int>("tokens"), targets = fixture().values<int>("targets");
  std::vector<StepResult> results(10);
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 1);
    give(*plan, world.rank(), parameters);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, numbers, 1);
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    for (StepResult& result : results) {
      const StepResult mine = trainer.step(numbers.learning_rate);
      if (world.rank() == 0) result = mine;
    }
  });
  const std::vector<double>& losses = fixture()[name + "/losses"].values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(name << " step " << i);
    CHECK(std::abs(results[i].loss - losses[i]) < 1e-5);
    if (fixture().has(name + "/norms"))
      CHECK(std::abs(results[i].gradient_norm - fixture()[name + "/norms"].values[i]) < 1e-4);
  }
}

const Mesh meshes[] = {Mesh{data = 1}, Mesh{data = 2, tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, sequence = 2}};

}  // namespace

TEST_CASE("logits are PyTorch's") {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const auto outputs = run<Evaluation<Model, Model::Tokens>>(mesh, 1);
    CHECK(lockstep::difference(outputs[0], array("logits")) < 1e-4);
  }
}
TEST_CASE("the loss and all gradients are PyTorch's") {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    using Step = Training<Model, KeepGradients, Model::Tokens, Model::Tokens>;
    const auto outputs = run<Step>(mesh, 2);
    CHECK(std::abs(outputs[0].data[0] - array("loss").data[0]) < 1e-5);
    const OwnedPlan plan = derive<Step>(mesh);
    std::size_t at = 2;
    for (const Member& m : plan->graph.members) {
      if (m.role != Role::parameter) continue;
      INFO(plan->graph.path(m));
      CHECK(lockstep::difference(outputs[at++], array("gradient/" + std::string(plan->graph.path(m)))) < 1e-4);
    }
    CHECK(at == 2 + 16);
  }
}
TEST_CASE("ten steps of AdamW are PyTorch's") {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const AdamW::Hyperparameters numbers{
        .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .clip_norm = 0};
    check_steps<AdamW>(mesh, numbers, "adamw");
    AdamW::Hyperparameters clipped = numbers;
    clipped.clip_norm = 1;
    check_steps<AdamW>(mesh, clipped, "adamw_clipped");
  }
}
TEST_CASE("ten steps of SGD with momentum are PyTorch's") {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_steps<Momentum>(mesh, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0, .clip_norm = 0}, "sgd");
  }
}
