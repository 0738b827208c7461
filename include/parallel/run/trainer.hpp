// One step of a training with an optimizer's numbers, and what a loss that is none means.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/meta/other_names.hpp>
#include <parallel/plan/unread.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/learning_rate.hpp>
#include <parallel/run/parameters.hpp>
#include <parallel/run/replicas.hpp>

namespace parallel::internals {

/// What a step of a training gives, alike on all ranks.
struct StepResult {
  double loss = 0;
  double gradient_norm = 0;  ///< before clipping
  bool skipped = false;      ///< on every rank: the loss or the norm was no finite number, so nothing was updated
  double loss_scale = 1;     ///< by which the gradients were larger while they were computed
#define PARALLEL_ELSEWHERE(method)                                                                            \
  template <class... Given>                                                                                   \
  double method(const Given&...) const {                                                                      \
    static_assert(                                                                                            \
        sizeof...(Given) > 99,                                                                                \
        "parallel: a step gives numbers, and is forward, backward and update; write const double loss = step" \
        "(x, y).loss");                                                                                       \
    return 0;                                                                                                 \
  }
  PARALLEL_ELSEWHERE(backward)
  PARALLEL_ELSEWHERE(item)
#undef PARALLEL_ELSEWHERE
  template <class Number>
  requires(std::is_arithmetic_v<Number>) operator Number() const {
    static_assert(!std::is_arithmetic_v<Number>,
                  "parallel: a step gives its loss among others; write step(x, y).loss, .gradient_norm or .skipped");
    return {};
  }
};

template <class Stream>
requires requires(Stream& stream) { stream.rdbuf(); }
Stream& operator<<(Stream& stream, const StepResult& result) {
  static_cast<void>(static_cast<long double>(result));
  return stream;
}

/// What a training does where a loss is no number.
enum class NoNumber { stops, skips };

/// A line for each parameter that nothing of the training reads, on the first rank of a stage: the model's function may
/// have forgotten it.
inline std::string told_unread(const Plan& plan, int rank) {
  for (int i = 0; i < plan.mesh.count; ++i)
    if (plan.mesh.axes[i].axis != plan.graph.stages && plan.mesh.coordinate(rank, plan.mesh.axes[i].axis) != 0)
      return "";
  std::string lines;
  for (const int member : unread_parameters(plan))
    lines += "parallel: nothing of this training reads " + std::string(plan.graph.path(member)) +
             ", which stays as it begins\n";
  return lines;
}

/// What holds an optimizer's numbers, and is no optimizer.
template <class Numbers>
concept HoldsNumbers = std::is_class_v<Numbers> && !requires {
  requires !std::is_same_v<typename Numbers::Hyperparameters, Numbers>;  // a struct has its own name within it
};
/// Whether a Trainer is made of these.
template <class World, class Parameters, class... Given>
constexpr bool trainer_of = false;
template <class World, class Parameters, class P, class W, class Q, class Numbers, class Seed, class... More>
constexpr bool trainer_of<World, Parameters, P, W, Q, Numbers, Seed, More...> =
    run_of<World, Parameters, P, W, Q>&& HoldsNumbers<std::remove_cvref_t<Numbers>> &&
    (!std::is_arithmetic_v<std::remove_cvref_t<More>> && ...);

/// A plan by a conversion: what takes it comes behind what takes a plan as it is.
struct SomePlan {
  template <class P>
  requires(std::is_convertible_v<const P&, const Plan&>) SomePlan(const P&) {}
};

/// Trains the parameters of one rank by a plan. Called by all ranks alike.
template <class World = void, class Device = void>
class Trainer {
 public:
  /// `numbers`: of the program's optimizer, as AdamW::Hyperparameters. Ranks compare them and the seed, and `facts`,
  /// what else they must have alike, before they begin. Throws Misuse where the program reads one of the numbers not,
  /// and what an Executor throws.
  template <HoldsNumbers Hyperparameters>
  Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Hyperparameters& numbers,
          std::uint64_t seed, const Device& device = {}, std::vector<Fact> facts = {}, Here here = {})
      : Trainer(plan, world, parameters, Named(plan, numbers), seed, device, std::move(facts), here) {}
  /// The same of a list in braces.
  Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters,
          const AdamW::Hyperparameters& numbers, std::uint64_t seed, const Device& device = {},
          std::vector<Fact> facts = {}, Here here = {})
      : Trainer(plan, world, parameters, Named(plan, numbers), seed, device, std::move(facts), here) {}
  template <class... Given>
  requires(!trainer_of<World, ParametersIn<MemoryOf<Device>>, Given&&...>) explicit Trainer(Given&&...)
      : Trainer(OutOfPlace<Given...>()) {}
  template <class P, class W, class Q, class... More>
  requires(!trainer_of<World, ParametersIn<MemoryOf<Device>>, P&&, W&&, Q&&, AdamW::Hyperparameters, More&&...>)
      Trainer(P&&, W&&, Q&&, const AdamW::Hyperparameters&, More&&...)
      : Trainer(OutOfPlace<P, W, Q, AdamW::Hyperparameters, More...>()) {}
  template <int is_named = 0>
  Trainer(const SomePlan&, World&, ParametersIn<MemoryOf<Device>>&, const OtherNames&, std::uint64_t = 1,
          const Device& = {}, std::vector<Fact> = {}, Here = {})
      : Trainer(Unmade()) {
    static_assert(
        is_named > 0,
        "parallel: numbers in braces are AdamW's: learning_rate, beta1, beta2, epsilon, weight_decay, clip_norm; write "
        "{.learning_rate = 1e-3}, and another optimizer's by its own struct, "
        "Momentum::Hyperparameters{.learning_rate = 1e-2, .momentum = 0.9}");
  }
  template <int has_parameters = 0>
  Trainer(const SomePlan&, World&, const AdamW::Hyperparameters&, std::uint64_t = 1) : Trainer(Unmade()) {
    static_assert(has_parameters > 0,
                  "parallel: a Trainer has parameters of yours, which programs over one model share; write Parameters "
                  "parameters(plan, world.rank(), 1), then Trainer<Threads, Cpu> step(plan, world, parameters, "
                  "{.learning_rate = 1e-3}, 1)");
  }
  /// One step with a learning rate, on the inputs that were given to `executor()`. Where the loss is no number nothing
  /// is updated, and Failure (exit code 1) is thrown on all ranks, unless `on_no_number` says otherwise.
  StepResult step(double learning_rate, Here here = {}) {
    check_number("learning_rate", learning_rate);
    if (executor_.reads("learning_rate")) executor_.scalar("learning_rate", learning_rate);
    return step(here);
  }
  /// The same with the learning rate of the step before, at first that of the hyperparameters.
  StepResult step(Here here = {});
  template <class Given, class... More>
  requires(!std::is_convertible_v<Given, double> && !std::is_convertible_v<Given, Here>) StepResult
      step(Given&&, More&&...) {
    static_assert(sizeof...(More) > 99,
                  "parallel: a trainer is called with the inputs, and its step with a learning rate; write step(x, y), "
                  "or step.step(rate.at(i)) of a schedule when the inputs were given to executor()");
    return {};
  }
  /// The same on these inputs: `const double loss = step(x, y).loss`.
  StepResult operator()(const HandedInput& first, const HandedInput& second = {}, const HandedInput& third = {},
                        const HandedInput& fourth = {}, const HandedInput& fifth = {}, const HandedInput& sixth = {},
                        const HandedInput& seventh = {}, const HandedInput& eighth = {}, Here here = {}) {
    executor_.inputs({{first, second, third, fourth, fifth, sixth, seventh, eighth}});
    return step(here);
  }
  template <int is_const = 1>
  StepResult step(double = 0) const {
    static_assert(is_const == 0,
                  "parallel: a Trainer that is const cannot go on; leave const out where it is declared");
    return {};
  }
  template <int is_const = 1>
  StepResult operator()(const HandedInput&, const HandedInput& = {}, const HandedInput& = {}, const HandedInput& = {},
                        const HandedInput& = {}, const HandedInput& = {}, const HandedInput& = {},
                        const HandedInput& = {}) const {
    return step<is_const>();
  }
  // What a loop calls elsewhere is refused.
#define PARALLEL_ELSEWHERE(method)                                                                                  \
  template <class... Given>                                                                                         \
  void method(const Given&...) {                                                                                    \
    static_assert(sizeof...(Given) > 99,                                                                            \
                  "parallel: a trainer's call is the whole step, forward, backward and update; write const double " \
                  "loss = step(x, y).loss, and what only evaluates as an Executor of an Evaluation");               \
  }
  PARALLEL_ELSEWHERE(zero_grad)
  PARALLEL_ELSEWHERE(backward)
  PARALLEL_ELSEWHERE(train)
  PARALLEL_ELSEWHERE(eval)
#undef PARALLEL_ELSEWHERE
#define PARALLEL_ELSEWHERE(method)                                                                                  \
  template <class... Given>                                                                                         \
  double method(const Given&...) {                                                                                  \
    static_assert(sizeof...(Given) > 99,                                                                            \
                  "parallel: numbers, inputs and outputs are those of a trainer's executor; write step.executor()." \
                  "scalar(\"learning_rate\", 1e-3), .input(0, x) or .output(0)");                                   \
    return 0;                                                                                                       \
  }
  PARALLEL_ELSEWHERE(scalar)
  PARALLEL_ELSEWHERE(input)
  PARALLEL_ELSEWHERE(output)
#undef PARALLEL_ELSEWHERE
  /// What becomes of a step whose loss is no finite number, from now on; without a word the run ends.
  void on_no_number(NoNumber what) { no_number_ = what; }
  /// A mode: behind every so many steps parameters and state are compared between ranks that hold them alike
  /// (replicas.hpp); 0: never. Alike on all ranks.
  void compare_replicas_every(int steps) {
    if (steps < 0)
      throw Misuse("replicas are to be compared every " + std::to_string(steps) +
                   " steps; give a number from 1 on, or 0 for never");
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
  struct Unmade {};
  template <class... Given>
  struct OutOfPlace : Unmade {
    static_assert(
        wrong_world<World, Given...>(),
        "parallel: a Trainer is made of a plan, its communicator and parameters, each with a name of its own and "
        "no temporary, the optimizer's numbers and a seed; write Parameters parameters(plan, world.rank(), 1), "
        "then Trainer<Threads, Cpu> step(plan, world, parameters, {.learning_rate = 1e-3}, 1)");
  };
  template <class Left>  // which no library has ahead
  requires(std::is_base_of_v<Unmade, Left>) explicit Trainer(Left)
      : Trainer(nothing<const Plan>(), nothing<World>(), nothing<ParametersIn<MemoryOf<Device>>>(),
                AdamW::Hyperparameters{}, 1) {}
  /// Hyperparameters by their names.
  struct Named {
    struct Number {
      std::string_view name;
      double value;
    };
    Vector<Number> all{};
    template <class Hyperparameters>
    Named(const Plan& plan, const Hyperparameters& numbers) {
      static_cast<void>(check_there(plan));
      const GraphView& g = plan.graph;
      if (std::all_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) { return n.phase == Phase::forward; }))
        throw Misuse(
            "a Trainer is made of an evaluation, which updates nothing; run it by Executor<Threads, Cpu> "
            "evaluate(plan, world, parameters)");
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
/// Without what it is of: refused, also with numbers in braces.
template <class... Given>
Trainer(const Given&...) -> Trainer<>;
template <class Plan, class World, class Parameters, class Seed, class... More>
Trainer(const Plan&, const World&, const Parameters&, const AdamW::Hyperparameters&, const Seed&, const More&...)
    -> Trainer<>;
template <class World, class On>
requires(!Runs<World, On>) class Trainer<World, On> : public Misnamed<Trainer<World, On>> {
 public:
  using Misnamed<Trainer<World, On>>::Misnamed;
  template <class Plan, class Communicator, class Parameters, class Seed, class... More>
  Trainer(const Plan&, const Communicator&, const Parameters&, const AdamW::Hyperparameters&, const Seed&,
          const More&...) {}
  template <class... Given>
  StepResult operator()(const Given&...) {
    return {};
  }
};

template <class World, class Device>
Trainer<World, Device>::Trainer(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters,
                                const Named& numbers, std::uint64_t seed, const Device& device, std::vector<Fact> facts,
                                Here here)
    : world_(world),
      executor_(plan, world, parameters, device, nullptr, begun_with(numbers, seed, std::move(facts)), here),
      synchronous_(plan.graph.commit >= 0) {
  std::fputs(told_unread(executor_.plan(), world.rank()).c_str(), stderr);
  if (executor_.reads("seed")) executor_.scalar("seed", static_cast<double>(seed));
  for (const auto& [name, value] : numbers.all) {
    if (name == "clip_norm" && value == 0 && !executor_.reads(name))
      continue;  // where nothing is clipped, none is what is meant
    executor_.scalar_of_all(name, value);
  }
}

template <class World, class Device>
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
            (executor_.steps() == 1
                 ? "; look at the data and at what the parameters begin with: PARALLEL_CHECK=finite names what made it"
                 : "; lower the learning rate, or run it with PARALLEL_CHECK=finite, which names what made it"),
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
