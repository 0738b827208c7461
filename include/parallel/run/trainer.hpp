// A training loop's parts: numbers of the optimizer, learning-rate schedules, one step, evaluation.
#pragma once
#include <cmath>
#include <numbers>

#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

namespace parallel {

/// Run-time numbers of the optimizers; each is a scalar of the plan, so that changing one compiles nothing.
struct Hyperparameters {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;  ///< AdamW
  double momentum = 0.9;                             ///< Sgd
  double weight_decay = 0.1;
  double clip_norm = 1;  ///< of the global gradient norm; 0: no clipping
};

/// Linear warm-up, then half a cosine from `peak` down to `floor` (Loshchilov and Hutter, 2017; nanoGPT's counting).
struct CosineSchedule {
  double peak = 1e-3, floor = 1e-4;
  int warmup = 100, steps = 2000;
  double at(int step) const {  // steps count from 0
    if (step < warmup) return peak * (step + 1) / (warmup + 1);
    if (step >= steps) return floor;
    const double progress = static_cast<double>(step - warmup) / (steps - warmup);
    return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
  }
};
struct ConstantSchedule {
  double value = 1e-3;
  double at(int) const { return value; }
};

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  ///< before clipping
  bool skipped = false;      ///< on every rank: the norm was no finite number
};

/// Trains the parameters of one rank by a plan. Called by all ranks alike.
template <Communicator World, Device Device>
class Trainer {
 public:
  Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Hyperparameters& numbers, std::uint64_t seed, const Device& device = {})
      : executor_(plan, world, parameters, device), numbers_(numbers) {
    executor_.scalar("seed", static_cast<double>(seed));
  }
  /// One step with a learning rate, on the inputs that were given to `executor()`.
  StepResult step(double learning_rate) {
    executor_.scalar("step", static_cast<double>(++steps_));
    executor_.scalar("learning_rate", learning_rate);
    executor_.scalar("beta1", numbers_.beta1), executor_.scalar("beta2", numbers_.beta2), executor_.scalar("epsilon", numbers_.epsilon);
    executor_.scalar("momentum", numbers_.momentum);
    executor_.scalar("weight_decay", numbers_.weight_decay);
    executor_.scalar("clip_norm", numbers_.clip_norm);
    executor_.run();
    return {executor_.output_scalar(0), executor_.output_scalar(1), executor_.skipped()};
  }
  Executor<World, Device>& executor() { return executor_; }

 private:
  Executor<World, Device> executor_;
  Hyperparameters numbers_;
  std::int64_t steps_ = 0;
};

}  // namespace parallel
