// Programs with each optimizer: ten steps by its formula on every mesh, what it keeps, and its own defaults.
#include <doctest/doctest.h>

#include "optimizer_steps.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 4, width = 6, features = 8;
/// The gradient of w is the sum of the inputs over the batch, that of b the batch's size. b begins with zeros, so it
/// does not decay.
struct Linear {
  Parameter<double, Shape<width, features / tensor>> w{normal(0.4)};
  Parameter<double, Shape<features / tensor>> b{zeros};
  constexpr auto operator()(Distributed auto x) const { return sum(matmul(x, w) + b); }
};
using Batch = Tensor<double, Shape<rows / data, width>>;
template <class Optimizer>
using Step = Training<Linear, Optimizer, Batch>;
struct Weights {
  std::vector<double> w = std::vector<double>(width * features), b = std::vector<double>(features);
};

std::vector<double> inputs(int step) {
  return program::numbers<double>(rows * width, static_cast<std::uint64_t>(step));
}
/// Ten steps by the plan, from `weights`. `trainer(plan, world, parameters)`: what trains.
template <class Optimizer, class F>
void train(const Mesh& mesh, Weights& weights, F trainer) {
  const OwnedPlan plan = derive<Step<Optimizer>>(mesh);
  const Weights first = weights;
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    parameters.set(plan, world.rank(), "w", first.w);
    parameters.set(plan, world.rank(), "b", first.b);
    auto training = trainer(plan, world, parameters);
    for (int step = 1; step <= 10; ++step) {
      training.executor().input(0, inputs(step));
      training.step();
    }
    for (int rank = 0; rank < world.size(); ++rank, world.barrier())  // one after the other, as several have the same
      if (rank == world.rank()) {
        parameters.get(plan, rank, "w", weights.w);
        parameters.get(plan, rank, "b", weights.b);
      }
  });
}
/// An executor as a trainer, so that numbers are those that a program reads where nobody says otherwise.
struct Alone {
  Executor<Threads, under_test::Device> own;
  auto& executor() { return own; }
  void step() { own.run(); }
};
template <class Optimizer>
Weights trained(const Mesh& mesh, const Weights& first, const typename Optimizer::Hyperparameters& numbers) {
  Weights weights = first;
  train<Optimizer>(mesh, weights, [&](auto& plan, auto& world, auto& parameters) {
    return Trainer<Threads, under_test::Device>(plan, world, parameters, numbers, 1);
  });
  return weights;
}
/// Ten steps by the formula.
template <class Optimizer>
Weights defined(const Weights& first, const typename Optimizer::Hyperparameters& numbers) {
  Weights weights = first;
  std::vector<std::array<double, 3>> state(width * features + features);
  for (int step = 1; step <= 10; ++step) {
    const std::vector<double> x = inputs(step);
    std::vector<double> gradients;
    for (int i = 0; i < width * features; ++i) {
      double sum = 0;
      for (int r = 0; r < rows; ++r) sum += x[static_cast<std::size_t>(r * width + i / features)];
      gradients.push_back(sum);
    }
    gradients.resize(state.size(), rows);
    double norm = 0;
    for (const double g : gradients) norm += g * g;
    const double factor = numbers.clip_norm > 0 ? std::min(1.0, numbers.clip_norm / (std::sqrt(norm) + 1e-6)) : 1;
    for (std::size_t i = 0; i < state.size(); ++i) {
      const bool of_w = i < weights.w.size();
      double& weight = of_w ? weights.w[i] : weights.b[i - weights.w.size()];
      state[i][0] = weight;
      optimizer_steps::Of<Optimizer>::step(numbers, of_w, factor * gradients[i], step, state[i].data());
      weight = state[i][0];
    }
  }
  return weights;
}
Weights first() { return {program::numbers<double>(width * features, 100), program::numbers<double>(features, 101)}; }
void check_near(const Weights& actual, const Weights& expected) {
  for (const auto& [a, e] : {std::pair{&actual.w, &expected.w}, {&actual.b, &expected.b}})
    for (std::size_t i = 0; i < e->size(); ++i) CHECK(std::abs((*a)[i] - (*e)[i]) < 1e-12);
}

template <class Optimizer>
constexpr auto& planned = plan<Step<Optimizer>, Mesh{data = 2, tensor = 2}>;
template <class Optimizer>
constexpr bool keeps = planned<Optimizer>.memory.of(Use::optimizer_state) ==
                       optimizer_steps::Of<Optimizer>::states* planned<Optimizer>.memory.of(Use::parameters);
static_assert(keeps<Sgd> && keeps<Momentum> && keeps<Nesterov> && keeps<Adam> && keeps<AdamW> && keeps<Lion>);
static_assert(planned<Sgd>.memory.of(Use::optimizer_state) == 0);

/// Somebody's own, who left its numbers away.
inline constexpr Operation descend{.name = "descend", .updates = true};
struct Descent {
  static constexpr void update(Update& u) {
    u.replace(descend, {u.parameter()}, {u.gradient(), u.factor()}, {"learning_rate"});
  }
};

template <class Hyperparameters>
concept HasMomentum = requires {
  Hyperparameters{.momentum = 0.9};
};
static_assert(!HasMomentum<Sgd::Hyperparameters> && HasMomentum<Momentum::Hyperparameters>);

}  // namespace

TEST_CASE("ten steps are those of the formula on every mesh") {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    INFO(optimizer_steps::Of<Optimizer>::update.name);
    for (const double clip_norm : {0.0, 3.0}) {
      typename Optimizer::Hyperparameters numbers{.learning_rate = 1e-2, .weight_decay = 0.1, .clip_norm = clip_norm};
      if constexpr (requires { numbers.epsilon; }) numbers.epsilon = 1e-2;  // so large that it is seen
      const Weights expected = defined<Optimizer>(first(), numbers);
      for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}})
        check_near(trained<Optimizer>(mesh, first(), numbers), expected);
    }
  });
}
TEST_CASE("numbers that nobody gives are the optimizer's own") {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    INFO(optimizer_steps::Of<Optimizer>::update.name);
    Weights alone = first();
    train<Optimizer>(Mesh{data = 1}, alone, [](auto& plan, auto& world, auto& parameters) {
      return Alone{Executor<Threads, under_test::Device>(plan, world, parameters)};
    });
    check_near(alone, defined<Optimizer>(first(), {}));
  });
}
TEST_CASE("a braced list is AdamW's, and no other optimizer takes it") {
  const auto make = [](const OwnedPlan& plan) {
    run_threads(1, [&](Threads& world) {
      under_test::Parameters parameters(plan, 0, 5);
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters, {}, 1);
    });
  };
  make(derive<Step<AdamW>>(Mesh{data = 1}));
  CHECK_THROWS_WITH_AS(
      make(derive<Step<Adam>>(Mesh{data = 1})),
      doctest::Contains("another optimizer's than the program's, which updates by adam; write those of its "
                        "own, Adam::Hyperparameters{...}: a braced list is AdamW's"),
      Misuse);
  CHECK_THROWS_WITH_AS(make(derive<Step<Sgd>>(Mesh{data = 1})),
                       doctest::Contains("updates by sgd; write those of its own, Sgd::Hyperparameters{...}"), Misuse);
  CHECK_THROWS_WITH_AS(make(derive<Step<Descent>>(Mesh{data = 1})),
                       doctest::Contains("the program's is none of these and reads no beta1; give yours a struct"),
                       Misuse);
}
TEST_CASE("what is updated takes the place of its own operand") {
  optimizer_steps::each([]<class Optimizer>(Optimizer) {
    const GraphView& g = planned<Optimizer>.graph;
    int updated = 0;
    for (const Member& m : g.members) {
      if (m.updated < 0) continue;
      const Node& node = g.node(g.value(m.updated).node);
      CHECK(node.operation == &optimizer_steps::Of<Optimizer>::update);
      CHECK(node.operands[m.updated - node.result] == m.value);
      ++updated;
    }
    CHECK(updated == 2 * (1 + optimizer_steps::Of<Optimizer>::states));
  });
}

namespace {
/// What an operation becomes is the optimizer's, too: softmax of the gradient over its last dimension, which is split.
struct BySoftmax {
  struct Hyperparameters {
    double learning_rate = 0.5, weight_decay = 0, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    const Update::Value share =
        u.apply(operation::softmax, {u.gradient()}, {}, {u.type(u.gradient()).layout.rank() - 1})[0];
    u.replace(operation::sgd, {u.parameter()}, {share, u.factor()}, {"learning_rate", "weight_decay"});
  }
};
}  // namespace
TEST_CASE("an optimizer applies what becomes several nodes, with collectives of its own") {
  const Weights first{program::numbers<double>(width * features, 7), program::numbers<double>(features, 8)};
  for (const Mesh& mesh : {Mesh{}, Mesh{tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const Weights after = trained<BySoftmax>(mesh, first, {});
    for (std::size_t i = 0; i < first.w.size(); ++i)  // all features have the same gradient
      CHECK(after.w[i] == doctest::Approx(first.w[i] - 10 * 0.5 / features));
    for (std::size_t i = 0; i < first.b.size(); ++i)
      CHECK(after.b[i] == doctest::Approx(first.b[i] - 10 * 0.5 / features));
  }
}

namespace {
struct Matrix {
  Parameter<double, Shape<6, 4>> w{normal(0.4)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
struct Gain {
  Parameter<double, Shape<6>> gain{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * gain)); }
};
/// Extents of 1 in every place.
struct Thin {
  struct Block {
    Parameter<double, Shape<1, 4>> up{normal(0.4)};
    Parameter<double, Shape<4, 1>> down{normal(0.4)};
    Parameter<double, Shape<1>> shift{normal(0.4)};
    constexpr auto operator()(Distributed auto x) const { return x + matmul(matmul(x, up), down) + shift; }
  };
  Parameter<double, Shape<6, 1>> in{normal(0.4)};
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(x, in)))); }
};
template <class Model, class Optimizer, class... S>
std::vector<double> five_losses(const Mesh& mesh) {
  const OwnedPlan plan = derive<AllStored<Training<Model, Optimizer, Tensor<double, Shape<4 / data, 6>>>, S...>>(mesh);
  std::vector<double> seen;
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, typename Optimizer::Hyperparameters{}, 1);
    trainer.executor().input(0, program::numbers<double>(4 * 6, 1));
    for (int step = 0; step < 5; ++step)
      if (const double loss = trainer.step().loss; world.rank() == 0) seen.push_back(loss);
  });
  return seen;
}
template <class Model, class Optimizer>
void check_stored() {
  const std::vector<double> one = five_losses<Model, Optimizer>(Mesh{});
  CHECK(one.front() > one.back());
  for (const std::vector<double>& stored : {five_losses<Model, Optimizer, Stored<data>>(Mesh{data = 2}),
                                            five_losses<Model, Optimizer, Stored<data, Zero::states>>(Mesh{data = 4}),
                                            five_losses<Model, Optimizer, Stored<data>, Stored<host>>(Mesh{data = 2})})
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(stored[i] == doctest::Approx(one[i]).epsilon(1e-10));
}
}  // namespace
TEST_CASE("models of matrices alone, of vectors alone, of extents of 1, stored and not") {
  check_stored<Matrix, Muon>();
  check_stored<Matrix, MuonMatchingAdamW>();
  check_stored<Gain, Muon>();
  check_stored<Gain, MuonMatchingAdamW>();
  check_stored<Thin, Muon>();
  check_stored<Matrix, Adafactor>();
  check_stored<Gain, Adafactor>();
  check_stored<Thin, Adafactor>();
}
