// Programs on GPUs under NCCL: the same losses as one rank, by plans with collectives and with stages, asked for step
// by step or as graphs.
#include <doctest/doctest.h>

#include <parallel/communicator/nccl_threads.hpp>
#include <parallel/run/cuda/nccl_on_gpu.hpp>

#include "nccl_runs.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int width = 16, micro_batches = 8, steps = 10;
/// Tensor, data and pipeline parallelism, with dropout, in few operations.
struct Layer {
  Parameter<double, Shape<width>> gain{ones};
  Parameter<double, Shape<width, 4 * width / tensor>> up{normal(0.3)};
  Parameter<double, Shape<4 * width / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    return x + dropout(to<Shape<4 / data, width>>(matmul(gelu(matmul(layer_norm(x, gain), up)), down)), 0.1);
  }
};
struct Perceptrons {
  Layers<8 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
using Step = Accumulate<micro_batches, Training<Perceptrons, AdamW, Tensor<double, Shape<4 / data, width>>>>;

template <Communicator World>
std::vector<double> train_steps(World& world, const Graph& graph, const Mesh& mesh, bool captured) {
  const OwnedPlan plan = derive(graph, mesh.on_stage(mesh.coordinate(world.rank(), &stage)), {}, {});
  under_test::Parameters parameters(plan, world.rank(), 5);
  Trainer<World, under_test::Device> trainer(plan, world, parameters,
                                             {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 3);
  trainer.executor().input(0, program::numbers<double>(micro_batches * 4 * width, 1));
  if (captured) trainer.executor().capture();
  std::vector<double> result;
  for (int step = 0; step < steps; ++step) {
    const StepResult r = trainer.step(1e-2);
    result.push_back(r.loss);
    result.push_back(r.gradient_norm);
  }
  return result;
}

/// `aside`: the hosts have a way beside NCCL, on which they count steps; else NCCL is it.
std::vector<double> losses_under_nccl(const Graph& graph, const Mesh& mesh, bool captured, unsigned seed,
                                      bool aside = true) {
  REQUIRE(nccl_runs::machine(mesh.ranks(), seed));
  std::vector<std::vector<double>> seen(static_cast<std::size_t>(mesh.ranks()));
  run_nccl(mesh.ranks(), [&](Nccl& world) {
    if (!aside) world.aside_by(nullptr);
    seen[static_cast<std::size_t>(world.rank())] = train_steps(world, graph, mesh, captured);
  });
  for (const auto& other : seen) CHECK(other == seen[0]);
  nccl_runs::no_faults();
  return seen[0];
}

}  // namespace

TEST_CASE("the losses on GPUs under NCCL are those of one rank") {
  const Graph graph = build<Step>();
  REQUIRE(nccl_runs::machine(1));
  std::vector<double> one;
  run_threads(1, [&](Threads& world) { one = train_steps(world, graph, Mesh{stage = 1}, false); });
  unsigned seed = 1;
  for (const Mesh& mesh : {Mesh{stage = 1}, Mesh{data = 2}, Mesh{tensor = 2, data = 2}, Mesh{stage = 4},
                           Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}})
    for (const Schedule* schedule :
         {&schedules::one_forward_one_backward, &schedules::interleaved<2>, &schedules::zero_bubble_h2})
      for (const bool captured : {false, true}) {
        if (!nccl_runs::machine(mesh.ranks())) continue;
        if (mesh.extent(&stage) < 2 && schedule != &schedules::one_forward_one_backward) continue;
        INFO(schedule->name << " on " << text(mesh) << (captured ? ", captured" : ""));
        const std::vector<double> many = losses_under_nccl(with_schedule(graph, *schedule), mesh, captured, seed++);
        REQUIRE(many.size() == one.size());
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(1e-9));
      }
}

TEST_CASE("ranks that have no way beside NCCL count their steps by it") {
  const Graph graph = build<Step>();
  unsigned seed = 100;
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{stage = 2}, Mesh{stage = 2, data = 2}})
    for (const bool captured : {false, true})
      if (nccl_runs::machine(mesh.ranks())) {
        const auto alone = losses_under_nccl(graph, mesh, captured, seed++, false);
        CHECK(alone == losses_under_nccl(graph, mesh, captured, seed++));
      }
}

TEST_CASE("a device that is not the communicator's") {
  if (!nccl_runs::machine(2)) return;
  const auto run = [](Nccl& world) {
    const under_test::Device device(1 - world.gpu());
    attach(world, device);
  };
  CHECK_THROWS_WITH(run_nccl(2, run), doctest::Contains("make its device with the number world.gpu()"));
}

TEST_CASE("a capture that fails is no error of the next kernel") {
  REQUIRE(nccl_runs::machine(1));
  const auto gpu = std::make_shared<Gpu>(0);
  CHECK_THROWS_AS(GpuGraph(gpu, [&] { gpu->finish(); }), GpuFailed);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK_THROWS_WITH(GpuGraph(gpu, [&] { cudaStreamSynchronize(gpu->stream()); }),
                    doctest::Contains("a step cannot be captured as a graph"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a rank that stays behind: who waits for its device sees it") {
  bool captured = false;
  SUBCASE("in a step") {}
  SUBCASE("in a captured step") { captured = true; }
  if (!nccl_runs::machine(2)) return;
  const Graph graph = build<Step>();
  std::atomic<bool> over = false;
  std::string words;
  const auto run = [&](Nccl& world) {
    const Mesh mesh{data = 2};
    const OwnedPlan plan = derive(graph, mesh, {}, {});
    under_test::Parameters parameters(plan, world.rank(), 5);
    Trainer<Nccl, under_test::Device> trainer(plan, world, parameters,
                                              {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 3);
    trainer.executor().input(0, program::numbers<double>(micro_batches * 4 * width, 1));
    if (captured) trainer.executor().capture();
    world.barrier();
    while (world.rank() == 1 && !over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (world.rank() == 1) return;
    struct Nothing : Aside {  // the counter of steps would wait for the other on the host
      void exchange(const Exchange&) override {}
      void deadline(std::chrono::milliseconds) override {}
      LongPhase within(const LongPhase& now) override { return now; }
      std::shared_ptr<Aside> split(int, int) override { return nullptr; }
    };
    world.aside_by(std::make_shared<Nothing>());
    try {
      trainer.step(1e-2);
      words = "nothing";
    } catch (const std::exception& error) {
      words = error.what();
    }
    over = true;
    throw Failure(words);
  };
  CHECK_THROWS_AS(run_nccl(2, run, {.deadline = std::chrono::seconds(2)}), Failure);
  const std::string where = captured ? "a step (or in a step that was captured as a graph" : "all_reduce of ";
  CHECK(nccl_runs::contains(words, "rank 0 of 2 waited 2 s in " + where));
}
