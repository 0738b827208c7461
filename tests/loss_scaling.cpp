// Programs in float16 and LossScaled ones: which steps are skipped and how the scale moves are PyTorch's, on every mesh;
// nothing that leaves the program is scaled; and where nothing overflows a scale changes no bits.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "small_gpt.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int width = 8, batch = 4;

/// Two layers on stages, each a product split over `tensor` there and back.
template <class T>
struct Layer {
  Parameter<T, Shape<width, 2 * width / tensor>> up{normal(0.3)};
  Parameter<T, Shape<2 * width / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
template <class T>
struct Model {
  Parameter<T, Shape<width>> first{ones};
  Layers<2 / stage, Layer<T>> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(cast<float>(layers(cast<T>(x) * first)))); }
};
using Batch = Tensor<float, Shape<batch / data, width>>;
template <class T, class Optimizer = AdamW, class Input = Batch>
using Step = Accumulate<2, Training<Model<T>, Optimizer, Input>>;

/// What a rank saw of a step.
struct Seen {
  double loss, norm, scale;
  bool skipped;
  bool operator==(const Seen&) const = default;
};
/// Twenty steps, with an element of a hundred thousand times the others' size in one example of one micro-batch where
/// `large(step)` says so; begun with this scale, which six good steps double.
template <class Program, class Large>
std::vector<Seen> steps(const Mesh& mesh, double scale, Large large) {
  std::vector<std::vector<Seen>> seen(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    under_test::Parameters parameters(plan, world.rank(), 1);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, {.clip_norm = 0.5}, 1);
    if (trainer.executor().reads("loss_scale")) trainer.loss_scale({.scale = scale, .doubles_after = 6});
    for (int step = 0; step < 20; ++step) {
      auto x = program::numbers<float>(2 * batch * width, static_cast<std::uint64_t>(step));
      if (large(step)) x[static_cast<std::size_t>(width + 3)] = 1000;
      trainer.executor().input(0, x);
      const StepResult r = trainer.step(1e-3);
      seen[static_cast<std::size_t>(world.rank())].push_back({r.loss, r.gradient_norm, r.loss_scale, r.skipped});
    }
    if (mesh.extent(&stage) == 1) compare_replicas(world, trainer.executor());
  });
  const auto decided = [](const std::vector<Seen>& of) {
    std::vector<std::pair<double, bool>> all;
    for (const Seen& s : of) all.emplace_back(s.scale, s.skipped);
    return all;
  };
  for (const auto& other : seen) CHECK(decided(other) == decided(seen[0]));
  return seen[0];
}
constexpr auto never = [](int) { return false; };

template <class Program, class Check>
void each_storing(Check check) {
  check.template operator()<Program>("whole");
  check.template operator()<AllStored<Program, Stored<data, Zero::states>>>("states");
  check.template operator()<AllStored<Program, Stored<data, Zero::gradients>>>("gradients");
  check.template operator()<AllStored<Program, Stored<data>>>("parameters");
}
const std::vector<Mesh> meshes{{data = 1},
                               {data = 2},
                               {tensor = 2},
                               {stage = 2},
                               {data = 2, tensor = 2},
                               {stage = 2, data = 2},
                               {stage = 2, data = 2, tensor = 2}};

}  // namespace

TEST_CASE("fifty steps in float16 are PyTorch's with autocast and GradScaler, on every mesh") {
  const std::vector<double>&losses = fixture()["f16/losses"].values, &scales = fixture()["f16/scales"].values;
  using Program = LossScaled<small_gpt::Step<float16>>;
  for (const Mesh& mesh : small_gpt::meshes) {
    INFO(text(mesh));
    small_gpt::train<Program>(mesh, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, [&](auto& trainer, int rank) {
      trainer.loss_scale({.scale = std::exp2(30), .doubles_after = 20});
      for (std::size_t step = 0; step < losses.size(); ++step) {
        const StepResult r = trainer.step(1e-2);
        if (rank != 0) continue;
        INFO("step " << step);
        CHECK(r.loss_scale == scales[step]);
        CHECK(r.loss == doctest::Approx(losses[step]).epsilon(0.01));
      }
    });
  }
}

TEST_CASE(
    "one rank's overflow is all ranks': they skip and halve alike, on every mesh, however parameters are stored") {
  const auto large = [](int step) { return step == 3 || step == 4 || step == 12; };
  // by hand: six good steps double, a skipped one halves, at which they begin to count anew
  std::vector<double> scales;
  double scale = 256;
  for (int step = 0, good = 0; step < 20; ++step) {
    scales.push_back(scale);
    if (large(step)) {
      scale /= 2;
      good = 0;
    } else if (++good == 6) {
      scale *= 2;
      good = 0;
    }
  }
  each_storing<LossScaled<Step<float16>>>([&]<class Program>(const char* stored) {
    INFO(stored);
    std::vector<Seen> one;
    for (const Mesh& mesh : meshes) {
      INFO(text(mesh));
      const std::vector<Seen> all = steps<Program>(mesh, 256, large);
      if (one.empty()) one = all;
      for (int step = 0; step < 20; ++step) {
        INFO("step " << step);
        const auto i = static_cast<std::size_t>(step);
        CHECK(all[i].skipped == large(step));
        CHECK(all[i].scale == scales[i]);
        CHECK(std::isfinite(all[i].loss));
        CHECK(all[i].loss == doctest::Approx(one[i].loss).epsilon(0.01));
        if (!large(step)) CHECK(all[i].norm == doctest::Approx(one[i].norm).epsilon(0.02));
      }
    }
  });
}

TEST_CASE("where nothing overflows a scale changes no bits") {
  each_storing<Step<float>>([&]<class Program>(const char* stored) {
    INFO(stored);
    for (const Mesh& mesh : meshes) {
      INFO(text(mesh));
      std::vector<Seen> plain = steps<Program>(mesh, 1, never), scaled = steps<LossScaled<Program>>(mesh, 4096, never);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        CHECK(scaled[i].scale == 4096 * std::exp2(i / 6));
        scaled[i].scale = plain[i].scale;
        CHECK(scaled[i] == plain[i]);
      }
    }
  });
}

TEST_CASE("what leaves a program is not scaled: gradients of parameters and of inputs") {
  using Input = Wanted<float, Shape<batch / data, width>>;
  const auto outputs = []<class Program>(const Mesh& mesh, double scale, Program*) {
    std::vector<std::vector<double>> all;
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = derive<Program>(mesh, world.rank());
      under_test::Parameters parameters(plan, world.rank(), 1);
      Executor<Threads, under_test::Device> executor(plan, world, parameters);
      if (executor.reads("loss_scale")) executor.scalar("loss_scale", scale);
      executor.input(0, program::numbers<float>(2 * batch * width, 7));
      executor.run();
      if (world.rank() != 0) return;
      for (int i = 0; i < executor.outputs(); ++i) {
        std::vector<std::byte> room;
        const View v = executor.on_host(executor.output(i), room);
        std::vector<double> values;
        for (std::int64_t e = 0; e < v.elements(); ++e)
          values.push_back(v.dtype == DType::f64 ? v.as<const double>()[e]
                                                 : static_cast<double>(v.as<const float>()[e]));
        all.push_back(values);
      }
    });
    return all;
  };
  using Exact = Step<float, KeepGradients, Input>;
  using Rounded = Step<float16, KeepGradients, Input>;
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const auto plain = outputs(mesh, 1, static_cast<Exact*>(nullptr)),
               scaled = outputs(mesh, 65536, static_cast<LossScaled<Exact>*>(nullptr)),
               rounded = outputs(mesh, 4096, static_cast<LossScaled<Rounded>*>(nullptr));
    REQUIRE(plain.size() == 2 + 3 + 1);
    CHECK(scaled == plain);
    REQUIRE(rounded.size() == plain.size());
    for (std::size_t o = 0; o < plain.size(); ++o) {
      INFO("output " << o);
      REQUIRE(rounded[o].size() == plain[o].size());
      double largest = 0, apart = 0;
      for (std::size_t i = 0; i < plain[o].size(); ++i) {
        largest = std::max(largest, std::abs(plain[o][i]));
        apart = std::max(apart, std::abs(rounded[o][i] - plain[o][i]));
      }
      CHECK(largest > 0);
      CHECK(apart < 0.01 * largest);
    }
  }
}

namespace {
/// A loss so small that its gradients are below float16's smallest number.
struct Faint {
  Parameter<float16, Shape<width>> w{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(cast<float>(x * w)) * 1e-9; }
};
/// A gradient that no scale makes finite.
struct Endless {
  Parameter<float, Shape<width>> w{zeros};
  constexpr auto operator()(Distributed auto x) const { return mean(sqrt(x * w)); }
};
template <class T>
using Rows = Tensor<T, Shape<batch / data, width>>;
template <class Use>
void alone(Use use) {
  run_threads(1, use);
}
}  // namespace

TEST_CASE("a gradient that float16 has not is one with a scale") {
  alone([](Threads& world) {
    const OwnedPlan plan = derive<LossScaled<Training<Faint, KeepGradients, Rows<float16>>>>(Mesh{data = 1}, 0);
    under_test::Parameters parameters(plan, 0, 1);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    executor.input(0, std::vector<float16>(batch * width, float16(1)));
    executor.scalar("loss_scale", 1);
    executor.run();
    std::vector<std::byte> room;
    CHECK(executor.on_host(executor.output(2), room).as<const float>()[0] == 0);
    executor.scalar("loss_scale", 65536);
    executor.run();
    CHECK(executor.on_host(executor.output(2), room).as<const float>()[0] ==
          doctest::Approx(1e-9 / width).epsilon(0.01));
  });
}

TEST_CASE("a training goes on with the scale that another had") {
  alone([](Threads& world) {
    const OwnedPlan plan = derive<LossScaled<Step<float>>>(Mesh{data = 1}, 0);
    const auto scales = [&](LossScale from, int steps) {
      under_test::Parameters parameters(plan, 0, 1);
      Trainer<Threads, under_test::Device> trainer(plan, world, parameters, {}, 1);
      trainer.loss_scale(from);
      trainer.executor().input(0, program::numbers<float>(2 * batch * width, 1));
      for (int i = 0; i < steps; ++i) static_cast<void>(trainer.step(1e-3));
      return trainer.loss_scale();
    };
    const LossScale begun{.scale = 8, .doubles_after = 5};
    const LossScale half = scales(begun, 7);
    CHECK(half.scale == 16);
    CHECK(half.steps == 2);
    const LossScale whole = scales(begun, 11), on = scales(half, 4);
    CHECK(whole.scale == 32);
    CHECK(whole.steps == 1);
    CHECK(on.scale == whole.scale);
    CHECK(on.steps == whole.steps);
    CHECK(scales({.scale = 0x1p127, .doubles_after = 1}, 2).scale == 0x1p127);
    CHECK(LossScale{}.scale == 65536);
    CHECK(LossScale{}.doubles_after == 2000);
  });
}

TEST_CASE("the smallest scale stays") {
  alone([](Threads& world) {
    const OwnedPlan plan = derive<LossScaled<Training<Endless, Sgd, Rows<float>>>>(Mesh{data = 1}, 0);
    under_test::Parameters parameters(plan, 0, 1);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, Sgd::Hyperparameters{}, 1);
    trainer.executor().input(0, std::vector<float>(batch * width, 1));
    trainer.loss_scale({.scale = 0x1p-125});
    for (int i = 0; i < 3; ++i) CHECK(trainer.step(1e-3).skipped);
    CHECK(trainer.loss_scale().scale == 0x1p-126);
  });
}

TEST_CASE("what is no scale is refused with the reason") {
  alone([](Threads& world) {
    const auto said = [](auto f) {
      try {
        f();
      } catch (const Misuse& e) {
        return std::string(e.what());
      }
      return std::string("nothing");
    };
    const auto contains = [](const std::string& all, const char* part) { return all.find(part) != std::string::npos; };
    const OwnedPlan plan = derive<LossScaled<Step<float>>>(Mesh{data = 1}, 0),
                    other = derive<Step<float>>(Mesh{data = 1}, 0);
    under_test::Parameters parameters(plan, 0, 1), others(other, 0, 1);
    Trainer<Threads, under_test::Device> trainer(plan, world, parameters, {}, 1), plain(other, world, others, {}, 1);
    for (const double scale : {0.0, -2.0, 3.0, 0x1p128, 0x1p-127, std::nan(""), HUGE_VAL}) {
      CHECK(contains(said([&] { trainer.loss_scale({.scale = scale}); }), "give a power of two from 2^-126 to 2^127"));
      CHECK(contains(said([&] { trainer.executor().scalar("loss_scale", scale); }), "give a power of two"));
    }
    CHECK(contains(said([&] { trainer.loss_scale({.doubles_after = 0}); }), "give a number from 1 on"));
    CHECK(contains(said([&] { trainer.loss_scale({.doubles_after = 3, .steps = 3}); }), "give a number from 1 on"));
    CHECK(contains(said([&] { plain.loss_scale({}); }), "the program scales no loss; write LossScaled<Program>"));
    CHECK(contains(said([&] { static_cast<void>(plain.loss_scale()); }), "the program scales no loss"));
    CHECK(trainer.loss_scale().scale == 65536);
  });
}
