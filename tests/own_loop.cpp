// A loop of one's own: a step is a call on its inputs, its outputs have names, and an evaluation gives several results.
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include <doctest/doctest.h>

#include <parallel/model/averaged.hpp>
#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 8, width = 6, classes = 4;
using X = Tensor<double, Shape<rows / data, width>>;
using Y = Tensor<double, Shape<rows / data, classes>>;

template <class Loss, class Hidden, class Scores>
struct Seen {
  Loss loss;
  Hidden hidden;
  Scores scores;
};
template <class Loss, class Hidden, class Scores>
Seen(Loss, Hidden, Scores) -> Seen<Loss, Hidden, Scores>;

struct Model {
  Parameter<double, Shape<width, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor, classes>> down{normal(0.4)};
  constexpr auto hidden(Distributed auto x) const { return gelu(matmul(x, up)); }
  constexpr auto operator()(Distributed auto x) const {
    const auto h = hidden(x);
    return std::tuple(matmul(h, down), h);
  }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(hidden(x), down) - y));
  }
};
struct Hidden {
  Model model;
  constexpr auto operator()(Distributed auto a, Distributed auto) const { return model.hidden(a); }
};
struct Scores {
  Model model;
  constexpr auto operator()(Distributed auto a, Distributed auto) const { return matmul(model.hidden(a), model.down); }
};
struct Loss {
  Model model;
  constexpr auto operator()(Distributed auto a, Distributed auto b) const { return model(a, b); }
};
/// The same with all that is of interest, by name.
struct Watched {
  Model model;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = model.hidden(x);
    const auto scores = matmul(h, model.down);
    return Seen{mean(square(scores - y)), h, scores};
  }
};
struct One {
  Parameter<double, Shape<width>> w{ones};
  constexpr auto operator()(Distributed auto a) const { return a * w; }
};
using Fit = Training<Model, Sgd, Wanted<double, Shape<rows / data, width>>, Y>;
using Gradients = Training<Model, KeepGradients, X, Y>;
using Pair = Evaluation<Model, X>;
using Look = Evaluation<Watched, X, Y>;

struct Labelled {
  Parameter<double, Shape<width, 8 / tensor>> up{normal(0.4)};
  constexpr auto operator()(Distributed auto a, Distributed auto labels) const {
    return mean(cross_entropy(matmul(a, up), labels));
  }
};
using Label = Training<Labelled, Sgd, X, Tensor<int, Shape<rows / data>>>;

std::vector<double> counted(int n, double by) {
  std::vector<double> all(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = std::sin(by * (i + 1));
  return all;
}
const std::vector<double> x = counted(rows * width, 0.7), y = counted(rows * classes, 0.3);

using Names = std::vector<std::string>;
Names names_of(const Plan& plan) {
  Names all;
  for (const Output& o : plan.graph.outputs) all.emplace_back(plan.graph.text(o.name));
  return all;
}

}  // namespace

TEST_CASE("outputs have names") {
  constexpr Mesh mesh{data = 2, tensor = 2};
  CHECK(names_of(plan<Fit, mesh>) == Names{"loss", "gradient_norm", "input.0.gradient"});
  CHECK(names_of(plan<Gradients, mesh>) == Names{"loss", "gradient_norm", "up.gradient", "down.gradient"});
  CHECK(names_of(plan<Pair, mesh>) == Names{"0", "1"});
  CHECK(names_of(plan<Look, mesh>) == Names{"loss", "hidden", "scores"});
  CHECK(names_of(plan<Evaluation<One, X>, Mesh{data = 2}>) == Names{"result"});
}

TEST_CASE("several results are what each alone is, whole sums on every rank, on any mesh") {
  const auto feed = [](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}, Mesh{tensor = 4}}) {
    const auto all = program::outputs<Look>(mesh, feed);
    REQUIRE(all.size() == 3);
    CHECK(all[0].data == program::outputs<Evaluation<Loss, X, Y>>(mesh, feed)[0].data);
    CHECK(all[1].data == program::outputs<Evaluation<Hidden, X, Y>>(mesh, feed)[0].data);
    CHECK(all[2].data == program::outputs<Evaluation<Scores, X, Y>>(mesh, feed)[0].data);
  }
}

TEST_CASE("a rank has a callable make what it needs of an input, and nothing else") {
  const std::vector<int> labels{1, 3, 0, 2, 7, 5, 6, 4};
  for (const Mesh& mesh :
       {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 4}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}})
    for (const int m : {1, 2}) {
      const OwnedPlan plan = m == 1 ? derive<Label>(mesh) : derive<Accumulate<2, Label>>(mesh);
      INFO(text(mesh));
      std::vector<double> all(static_cast<std::size_t>(m) * x.size());
      std::vector<int> targets(static_cast<std::size_t>(m) * labels.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = x[i % x.size()] + static_cast<double>(i);
      for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = labels[i % labels.size()];
      run_threads(mesh.ranks(), [&](Threads& world) {
        Parameters parameters(plan, world.rank(), 5), others(plan, world.rank(), 5);
        Trainer<Threads, CpuDouble> spans(plan, world, parameters, Sgd::Hyperparameters{}, 1),
            step(plan, world, others, Sgd::Hyperparameters{}, 1);
        std::size_t made = 0;
        const double loss =
            step(
                [&](std::size_t first, std::span<double> run) {
                  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), run.size(), run.begin());
                  made += run.size();
                },
                [&](std::size_t i) { return targets[i]; })
                .loss;
        CHECK(loss == spans(all, targets).loss);
        CHECK(made == all.size() / static_cast<std::size_t>(mesh.extent(&data)));
        try {
          step.executor().input(1, [](std::size_t i) { return i == 0 ? 9 : 0; });
          CHECK(plan->mesh.coordinate(world.rank(), &data) > 0);  // another rank's part
        } catch (const Misuse& refused) {
          CHECK(std::string(refused.what()).starts_with("input 1, element 0: target 9 of 8 classes"));
        }
        others.set(plan, world.rank(), "up", [](std::size_t i) { return 0.5 * static_cast<double>(i); });
        std::vector<double> up(width * 8, -1);
        others.get(plan, world.rank(), "up", up);
        for (std::size_t i = 0; i < up.size(); ++i) CHECK((up[i] == 0.5 * static_cast<double>(i) || up[i] == -1));
      });
    }
}

TEST_CASE("tensors and numbers can be listed, and read by what they are called there") {
  const OwnedPlan fit =
      derive<LossScaled<Grouped<Training<Model, Averaged<AdamW>, X, Y>, Group<"head", "down">>>>(Mesh{data = 2});
  run_threads(2, [&](Threads& world) {
    Parameters parameters(fit, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(fit, world, parameters, {.weight_decay = 0.25}, 1);
    auto& executor = step.executor();
    Names tensors, numbers;
    for (const NamedTensor& t : executor.tensors()) {
      tensors.push_back(t.name);
      std::vector<double> whole(static_cast<std::size_t>(t.type.layout.elements()));
      executor.get(t.name, whole);
    }
    CHECK(tensors ==
          Names{"up", "down", "up.mean", "up.variance", "up.average", "down.mean", "down.variance", "down.average"});
    executor.scalar("head.learning_rate", 0.5);
    step(x, y);
    for (const NamedNumber& n : executor.numbers()) {
      numbers.push_back(n.name);
      INFO(n.name);
      REQUIRE(n.value.has_value());
      CHECK(*n.value == executor.scalar(n.name));
      const bool moved = n.name == "head.learning_rate" || n.name.ends_with("weight_decay") || n.name == "step";
      CHECK((n.value == n.by_default) == !moved);
    }
    CHECK(executor.scalar("step") == 2);
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == Names{"average_decay", "average_from", "beta1", "beta2", "clip_norm", "epsilon",
                           "head.average_decay", "head.average_from", "head.beta1", "head.beta2", "head.epsilon",
                           "head.learning_rate", "head.weight_decay", "learning_rate", "loss_scale", "step",
                           "weight_decay"});
  });
}

TEST_CASE("a step is a call") {
  const OwnedPlan fit = derive<Fit>(Mesh{data = 2, tensor = 2}), look = derive<Pair>(Mesh{data = 2, tensor = 2});
  run_threads(4, [&](Threads& world) {
    Parameters parameters(fit, world.rank(), 5), others(fit, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(fit, world, parameters, Sgd::Hyperparameters{.learning_rate = 0.1}, 1),
        by_hand(fit, world, others, Sgd::Hyperparameters{.learning_rate = 0.1}, 1);
    for (int i = 0; i < 3; ++i) {
      by_hand.executor().input(0, x);
      by_hand.executor().input(1, y);
      const double loss = step(x, std::span(y)).loss;
      CHECK(loss == by_hand.step().loss);
      CHECK(loss == step.executor().output_scalar("loss"));
      CHECK(step.executor().output_scalar("gradient_norm") == by_hand.executor().output_scalar(1));
    }
    Executor<Threads, CpuDouble> predict(look, world, parameters);
    const View named = predict(x).output("0");
    CHECK(named.data == predict.output(0).data);
    CHECK(predict.output_names() == Names{"0", "1"});
    const auto said = [](auto f) {
      try {
        f();
      } catch (const Misuse& m) {
        return std::string(m.what());
      }
      return std::string();
    };
    CHECK(said([&] { predict(x, y); }) ==
          "the program takes 1 inputs, but 2 were given; give one for each, in the order of the program's types");
    CHECK(said([&] { predict.output("hidden"); }) == "the program has no output hidden; they are 0, 1");
    CHECK(said([&] { step(x); }).starts_with("the program takes 2 inputs, but 1 were given"));
  });
}

TEST_CASE("an output as a whole tensor, of which each rank writes its part") {
  using Whole = std::vector<double>;
  struct Outputs {
    Whole hidden = Whole(rows * 8, -99), scores = Whole(rows * classes, -99);
  };
  const auto outputs = [](const Mesh& mesh) {
    const OwnedPlan look = derive<Look>(mesh);
    std::vector<Outputs> of_rank(static_cast<std::size_t>(mesh.ranks()));
    run_threads(mesh.ranks(), [&](Threads& world) {
      Outputs& own = of_rank[static_cast<std::size_t>(world.rank())];
      Parameters parameters(look, world.rank(), 5);
      Executor<Threads, CpuDouble> executor(look, world, parameters);
      CHECK_THROWS_WITH_AS(executor.get("hidden", own.hidden),
                           "hidden is asked for before the first step; run the program first", Misuse);
      executor(x, y).get("hidden", own.hidden);
      executor.get("scores", own.scores);
      Whole few(3);
      CHECK_THROWS_AS(executor.get("scores", few), Misuse);
      CHECK_THROWS_AS(executor.get("nothing", few), Misuse);
    });
    return of_rank;
  };
  const Outputs one = outputs(Mesh{})[0];
  const std::vector<Outputs> four = outputs(Mesh{data = 2, tensor = 2});
  const auto check = [&](const Whole Outputs::*output, int holders) {
    for (std::size_t i = 0; i < (one.*output).size(); ++i) {
      int written = 0;
      for (const Outputs& rank : four) {
        if ((rank.*output)[i] == -99) continue;
        CHECK((rank.*output)[i] == doctest::Approx((one.*output)[i]));
        ++written;
      }
      CHECK(written == holders);
    }
  };
  check(&Outputs::hidden, 1);
  check(&Outputs::scores, 2);
}

TEST_CASE("a number out of its range is refused when it is set, by whatever way") {
  using Step = Grouped<Training<Model, Averaged<AdamW>, X, Y>, Group<"head", "down">>;
  const OwnedPlan fit = derive<Step>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(fit, 0, 5);
    using T = Trainer<Threads, CpuDouble>;
    const auto said = [](auto f) {
      try {
        f();
      } catch (const Misuse& m) {
        CHECK(m.exit_code == exit_code::internal);
        return std::string(m.what());
      }
      return std::string();
    };
    constexpr double infinity = std::numeric_limits<double>::infinity(),
                     none = std::numeric_limits<double>::quiet_NaN();
    const struct {
      const char *name, *words;
      std::vector<double> wrong, right;
    } all[] = {
        {"learning_rate", "a number from 0 on", {-0.01, infinity, none}, {0, 2}},
        {"head.learning_rate", "a number from 0 on", {-0.01, infinity, none}, {0, 2}},
        {"weight_decay", "a number from 0 on", {-1e-9, none}, {0, 1.5}},
        {"clip_norm", "a number from 0 on", {-1, infinity}, {0, 1e9}},
        {"epsilon", "a number from 0 on", {-1e-8}, {0, 1}},
        {"beta1", "a number from 0 on and below 1", {-0.1, 1, 2, none}, {0, 0.999}},
        {"head.beta2", "a number from 0 on and below 1", {-0.1, 1, 1.5}, {0, 0.999}},
        {"average_decay", "a number from 0 to 1", {-0.1, 1.5, none}, {0, 1}},
        {"average_from", "a whole number from 0 on", {-1, 2.5}, {0, 7}},
        {"step", "a whole number from 0 on", {-5, 2.5, infinity, none}, {1, 7}},
    };
    T step(fit, world, parameters, {}, 1);
    for (const auto& [name, words, wrong, right] : all) {
      for (const double number : right) {
        step.executor().scalar(name, number);
        CHECK(step.executor().scalar(name) == number);
      }
      for (const double number : wrong)
        CHECK(said([&, called = name] { step.executor().scalar(called, number); }) ==
              "the number " + std::string(name) + " is " + internals::shortest(number) + "; give " + words);
      CHECK(step.executor().scalar(name) == right.back());
    }
    const auto of = [&](const AdamW::Hyperparameters& numbers) {
      return said([&] { T(fit, world, parameters, numbers, 1); });
    };
    CHECK(of({.learning_rate = -0.01}) == "the number learning_rate is -0.01; give a number from 0 on");
    CHECK(of({.beta1 = 1.5}) == "the number beta1 is 1.5; give a number from 0 on and below 1");
    CHECK(of({.beta2 = 1}) == "the number beta2 is 1; give a number from 0 on and below 1");
    CHECK(of({.weight_decay = infinity}) == "the number weight_decay is inf; give a number from 0 on");
    CHECK(said([&] { step.step(-0.01); }) == "the number learning_rate is -0.01; give a number from 0 on");
    CHECK(said([&] { static_cast<void>(step.executor().output_scalar("loss")); }) ==
          "output_scalar is asked for before the first step; run the program first");
    const double loss = step(x, y).loss;
    CHECK(loss == step.executor().output_scalar("loss"));
  });
}

namespace {
/// An optimizer of one's own, with a number of its own.
struct Pulled {
  struct Hyperparameters {
    double learning_rate = 1e-3, pull = -0.5, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    u.replace(operation::sgd, {u.parameter()}, {u.gradient(), u.factor()}, {"learning_rate", "pull"});
  }
};
}  // namespace
TEST_CASE("a number of somebody else's optimizer is finite, and no more is known of it") {
  using Step = Training<Model, Pulled, X, Y>;
  const OwnedPlan fit = derive<Step>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(fit, 0, 5);
    Trainer<Threads, CpuDouble> step(fit, world, parameters, Pulled::Hyperparameters{}, 1);
    step.executor().scalar("pull", -2);
    CHECK(step.executor().scalar("pull") == -2);
    CHECK_THROWS_WITH_AS(step.executor().scalar("pull", std::nan("")), "the number pull is nan; give a finite number",
                         Misuse);
  });
}
