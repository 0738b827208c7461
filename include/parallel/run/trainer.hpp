// One step of a training with an optimizer's numbers, and what a loss that is none means.
#pragma once
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/run/executor.hpp>
#include <parallel/run/learning_rate.hpp>
#include <parallel/run/parameters.hpp>
#include <parallel/run/replicas.hpp>

namespace parallel::internals {

struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  ///< before clipping
  bool skipped = false;      ///< on every rank: the loss or the norm was no finite number, so nothing was updated
  double loss_scale = 1;     ///< by which the gradients were larger while they were computed
};

/// What a training does where a loss is no number.
enum class NoNumber { stops, skips };

/// Trains the parameters of one rank by a plan. Called by all ranks alike.
template <Communicator World, Device Device>
class Trainer {
 public:
  /// `numbers`: of the program's optimizer, as AdamW::Hyperparameters. Ranks compare them and the seed, and `facts`,
  /// what else they must have alike, before they begin. Throws Misuse where the program reads one of the numbers not,
  /// and what an Executor throws.
  template <class Hyperparameters = AdamW::Hyperparameters>
  Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Hyperparameters& numbers,
          std::uint64_t seed, const Device& device = {}, std::vector<Fact> facts = {}, Here here = {})
      : Trainer(plan, world, parameters, Named(plan.graph, numbers), seed, device, std::move(facts), here) {}
  /// One step with a learning rate, on the inputs that were given to `executor()`. Where the loss is no number nothing
  /// is updated, and Failure (exit code 1) is thrown on all ranks, unless `on_no_number` says otherwise.
  StepResult step(double learning_rate, Here here = {}) {
    check_number("learning_rate", learning_rate);
    if (executor_.reads("learning_rate")) executor_.scalar("learning_rate", learning_rate);
    return step(here);
  }
  /// The same with the learning rate of the step before, at first that of the hyperparameters.
  StepResult step(Here here = {});
  /// The same on these inputs: `const double loss = step(x, y).loss`.
  StepResult operator()(const HandedInput& first, const HandedInput& second = {}, const HandedInput& third = {},
                        const HandedInput& fourth = {}, const HandedInput& fifth = {}, const HandedInput& sixth = {},
                        const HandedInput& seventh = {}, const HandedInput& eighth = {}, Here here = {}) {
    executor_.inputs({{first, second, third, fourth, fifth, sixth, seventh, eighth}});
    return step(here);
  }
  void on_no_number(NoNumber what) { no_number_ = what; }
  /// A mode: behind every so many steps parameters and state are compared between ranks that hold them alike
  /// (replicas.hpp); 0: never. Alike on all ranks.
  void compare_replicas_every(int steps) {
    compared_every_ = steps;
    since_compared_ = 0;
  }
  /// How the loss of the next step is scaled: what a training that goes on later is to be given. Throws Misuse where
  /// the program is not LossScaled.
  LossScale loss_scale() { return executor_.loss_scale(); }
  /// Begins, or goes on, so: alike on all ranks. Throws Misuse for what is no scale, too.
  void loss_scale(const LossScale& to) { executor_.loss_scale(to); }
  Executor<World, Device>& executor() { return executor_; }

 private:
  /// Hyperparameters by their names.
  struct Named {
    struct Number {
      std::string_view name;
      double value;
    };
    Vector<Number> all{};
    template <class Hyperparameters>
    Named(const GraphView& g, const Hyperparameters& numbers) {
      check_optimizer<Hyperparameters>(g);
      each_hyperparameter(numbers, [this](std::string_view name, double value) { all.push_back({name, value}); });
    }
  };
  Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Named& numbers,
          std::uint64_t seed, const Device& device, std::vector<Fact> facts, Here here);
  static std::vector<Fact> begun_with(const Named& numbers, std::uint64_t seed, std::vector<Fact> facts) {
    facts.push_back(always(fact("seed of the trainer", std::to_string(seed))));
    for (const auto& [name, value] : numbers.all) facts.push_back(fact_of_scalar(name, value));
    return facts;
  }

  World& world_;
  Executor<World, Device> executor_;
  int compared_every_ = 0, since_compared_ = 0;
  bool synchronous_;  // updates wait for the loss
  NoNumber no_number_ = NoNumber::stops;
};

template <Communicator World, Device Device>
Trainer<World, Device>::Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters,
                                const Named& numbers, std::uint64_t seed, const Device& device, std::vector<Fact> facts,
                                Here here)
    : world_(world),
      executor_(plan, world, parameters, device, nullptr, begun_with(numbers, seed, std::move(facts)), here),
      synchronous_(plan.graph.commit >= 0) {
  if (executor_.reads("seed")) executor_.scalar("seed", static_cast<double>(seed));
  for (const auto& [name, value] : numbers.all) {
    if (name == "clip_norm" && value == 0 && !executor_.reads(name))
      continue;  // where nothing is clipped, none is what is meant
    executor_.scalar_of_all(name, value);
  }
}

template <Communicator World, Device Device>
StepResult Trainer<World, Device>::step(Here here) {
  const double scale = executor_.reads("loss_scale") ? executor_.loss_scale().scale : 1;
  executor_.run(here);
  if (compared_every_ > 0 && ++since_compared_ == compared_every_) {
    since_compared_ = 0;
    compare_replicas(world_, executor_, here);
  }
  const StepResult result{executor_.output_scalar(0), executor_.output_scalar(1), executor_.skipped(), scale};
  if (!std::isfinite(result.loss) && no_number_ == NoNumber::stops)
    throw Failure(
        "the loss is " + std::string(std::isnan(result.loss) ? "nan" : "infinite") + " in step " +
            std::to_string(executor_.steps()) +
            (synchronous_ ? ", in which nothing was updated" : "; stages that wait for none have gone on with it") +
            "; lower the learning rate, or run it with PARALLEL_CHECK=finite, which names what made it",
        exit_code::failed);
  return result;
}

}  // namespace parallel::internals

namespace parallel {
using internals::LossScale;
using internals::NoNumber;
using internals::StepResult;
using internals::Trainer;
}  // namespace parallel

#ifdef PARALLEL_LIBRARY
#include <parallel/run/compiled_ahead.hpp>
#endif
