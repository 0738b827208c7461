// docs/own-loop.md: a trainer of one's own, of parts that are taken or left. It is stopped half way, and goes on.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/averaged.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/averages.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/learning_rate.hpp>
#include <parallel/run/progress.hpp>
#include <parallel/run/stop_signals.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr int batch = 32, features = 16, hidden = 24;

/// Learns the largest of its inputs.
struct Model {
  Parameter<float, Shape<features, hidden / tensor>> up{xavier};
  Parameter<float, Shape<hidden / tensor>> bias{zeros};
  Parameter<float, Shape<hidden / tensor, features>> down{xavier};
  constexpr auto scores(Distributed auto x) const { return matmul(relu(matmul(x, up) + bias), down); }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(cross_entropy(scores(x), y)); }
};
/// Around the model, whose parameters it has: the loss, and how many are told right.
template <class Loss, class Right>
struct Told {
  Loss loss;
  Right right;
};
template <class Loss, class Right>
Told(Loss, Right) -> Told<Loss, Right>;
struct Tested {
  Model model;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return Told{model(x, y), sum(cast<float>(equal(argmax<1>(model.scores(x)), y)))};
  }
};
using X = Tensor<float, Shape<batch / data, features>>;
using Y = Tensor<int, Shape<batch / data>>;
using Step = Training<Model, Averaged<AdamW>, X, Y>;
using Test = Evaluation<Tested, X, Y>;

/// Sample i of what there is to learn, and what is to be told of it.
float feature(std::int64_t sample, std::size_t i) {
  return std::sin(static_cast<float>((static_cast<std::int64_t>(i) + 3) * (sample + 7) * (sample % 91 + 1)));
}
int largest(std::int64_t sample) {
  int at = 0;
  for (std::size_t i = 1; i < features; ++i)
    if (feature(sample, i) > feature(sample, static_cast<std::size_t>(at))) at = static_cast<int>(i);
  return at;
}

/// Returns the loss by the averages.
template <Communicator World>
double train(World& world, const Mesh& mesh, const std::string& folder, int steps, const StopSignals& signals) {
  const OwnedPlan plan = derive<Step>(mesh, world.rank()), test_plan = derive<Test, Step>(mesh, world.rank());
  Parameters parameters(plan, world.rank(), 1), averages(plan, world.rank(), 1);
  Executor<World, Cpu> step(plan, world, parameters), test(test_plan, world, averages);

  step.scalar("weight_decay", 0.05);
  step.scalar("clip_norm", 1);
  step.scalar("average_decay", 0.98);
  const WarmedUp rate{20, CosineSchedule{.peak = 1e-2, .floor = 1e-3, .warmup = 0, .steps = 180}};

  Checkpoints checkpoints(world, folder);
  const Resumed from = checkpoints.resume(step);
  Progress progress(steps, batch, world.rank() == 0);
  for (int i = static_cast<int>(from.step); i < steps; ++i) {
    const auto sample = [&](std::size_t row) { return std::int64_t{i} * batch + static_cast<std::int64_t>(row); };
    step.scalar("learning_rate", rate.at(i));
    step([&](std::size_t at) { return feature(sample(at / features), at % features); },
         [&](std::size_t row) { return largest(sample(row)); });
    const double loss = step.output_scalar("loss");
    if (!std::isfinite(loss)) throw Failure("the loss is no number in step " + std::to_string(i), exit_code::failed);
    progress.step(i, loss, step.output_scalar("gradient_norm"));
    const bool stops = signals.asked(world);
    if (stops || (i + 1) % 50 == 0) checkpoints.save(step, i + 1);
    if (stops) break;
  }
  progress.finish();

  take_averages(world, step, averages);
  double loss = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto sample = [&](std::size_t row) { return 1'000'000 + i * batch + static_cast<std::int64_t>(row); };
    test([&](std::size_t at) { return feature(sample(at / features), at % features); },
         [&](std::size_t row) { return largest(sample(row)); });
    loss += test.output_scalar("loss") / 8;
  }
  return loss;
}

}  // namespace

int main() {
  return guarded("own_loop", [] {
    const std::string folder = (std::filesystem::temp_directory_path() / "parallel-own-loop-XXXXXX").string();
    std::string made = folder, other = folder;
    if (::mkdtemp(made.data()) == nullptr || ::mkdtemp(other.data()) == nullptr)
      throw Failure("no folder can be made", exit_code::io);
    const StopSignals signals;
    double at_once = 0, in_two = 0;
    run_threads(1, [&](Threads& world) { at_once = train(world, Mesh{data = 1}, made, 100, signals); });
    const auto half = [&](const Mesh& mesh, int steps) {
      run_threads(mesh.ranks(), [&](Threads& world) {
        const double loss = train(world, mesh, other, steps, signals);
        if (world.rank() == 0) in_two = loss;
      });
    };
    half(Mesh{data = 2}, 50);
    half(Mesh{data = 2, tensor = 2}, 100);
    std::filesystem::remove_all(made);
    std::filesystem::remove_all(other);
    std::printf("at once %.6f, in two halves %.6f\n", at_once, in_two);
    if (std::abs(at_once - in_two) > 1e-4 || at_once > 2.5)
      throw Failure("a training that goes on does not what one at once does", exit_code::failed);
    return exit_code::done;
  });
}
