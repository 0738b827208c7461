// A program that runs eagerly gives the bits of its plan: a small GPT with layers and dropout, a network of images, a
// loop over time, parameters that are stored split, micro-batches; on every mesh.
#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/run/eager.hpp>
#include <parallel/run/eagerly.hpp>
#include <parallel/run/trainer.hpp>

#include "gpt_model.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr gpt::Sizes small{};
using Gpt = gpt::Gpt<small>;
using Tokens = gpt::Tokens<small>;

struct Images {
  Parameter<float, Shape<4, 1, 3, 3>> first{normal(0.3)};
  Parameter<float, Shape<8 / tensor, 4, 3, 3>> second{normal(0.1)};
  Parameter<float, Shape<8 / tensor, 4, 5>> out{normal(0.05)};
  constexpr auto scores(Distributed auto images) const {
    const auto seen = max_pool<2>(relu(convolution<1, 1>(relu(convolution<1, 1>(images, first)), second)));
    return matmul<2>(reshape<8, 8, 4>(seen), out);
  }
  constexpr auto operator()(Distributed auto images, Distributed auto labels) const {
    return mean(cross_entropy(scores(images), labels));
  }
  constexpr auto operator()(Distributed auto images) const { return scores(images); }
};

struct Cell {
  Parameter<float, Shape<6, 6>> own{normal(0.5)};
  constexpr auto operator()(Distributed auto state, Distributed auto x) const {
    const auto next = tanh(matmul(state, own) + x);
    return std::pair(next, square(next));
  }
};
struct OverTime {
  Parameter<float, Shape<6, 6 / tensor>> up{normal(0.5)};
  Scan<5, Cell, Recompute<>> cell;
  constexpr auto operator()(Distributed auto x) const {
    const auto [last, each] = cell(constant<float, Shape<4 / data, 6>>(0), x);
    return sum(square(matmul(last, up))) + sum(each);
  }
};

struct Residual {
  Parameter<float, Shape<6, 6>> w{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
};
struct Staged {
  Layers<4 / stage, Residual, Recompute<2>> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};

/// Applies random operations in another order than that in which the program is written.
struct Drawn {
  Parameter<float, Shape<6>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    const auto later = dropout(x * w, 0.5);
    const auto first = dropout(x, 0.25) + random<float, Shape<4, 6>>(0.5);
    return mean(square(first - later));
  }
};

template <class T>
std::vector<T> numbers(std::size_t n, double below = 0) {
  std::vector<T> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = random_uniform(3, n, i);
    all[i] = static_cast<T>(below > 0 ? u * below : 2 * u - 1);
  }
  return all;
}

constexpr Mesh meshes[]{{data = 1}, {data = 2}, {tensor = 2}, {data = 2, tensor = 2}};

/// Three steps of a training, whose losses the model gives before, eagerly.
template <class Step, class... Input>
void trains(const Mesh& mesh, const Input&... inputs) {
  const OwnedPlan plan = derive<Step>(mesh);
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, Cpu> step(plan, world, parameters, AdamW::Hyperparameters{.learning_rate = 0.01}, 7);
    Eagerly<Step, Threads, Cpu> eager(plan, world, parameters);
    for (int i = 0; i < 3; ++i) {
      eager.scalars_of(step.executor());
      const double looked = eager(inputs...).output_scalar("loss"), loss = step(inputs...).loss;
      CHECK(looked == loss);
      CHECK(loss > 0);
    }
  });
}

}  // namespace

TEST_CASE("a GPT with dropout") {
  const auto tokens = numbers<int>(64, 32), targets = numbers<int>(64, 31);
  for (const Mesh& mesh : meshes) trains<Training<Gpt, AdamW, Tokens, Tokens>>(mesh, tokens, targets);
}

TEST_CASE("inputs that are made, in micro-batches") {
  using Step =
      Accumulate<3, Training<Images, AdamW, Tensor<float, Shape<8 / data, 1, 4, 4>>, Tensor<int, Shape<8 / data>>>>;
  const auto images = numbers<float>(384);
  const auto labels = numbers<int>(24, 5);
  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 5);
    Eagerly<Step, Threads, Cpu> eager(plan, world, parameters);
    const double handed = eager(images, labels).output_scalar("loss");
    CHECK(eager([&](std::size_t i) { return images[i]; }, [&](std::size_t i) { return labels[i]; })
              .output_scalar("loss") == handed);
    const char* const none = nullptr;
    constexpr const char* said = "a null pointer was given as a name; give the name as text, \"mlp.up\"";
    CHECK_THROWS_WITH_AS(eager.output_scalar(none), said, Misuse);
    CHECK_THROWS_WITH_AS(eager.output<float>(none), said, Misuse);
    CHECK_THROWS_WITH_AS(eager.scalar(none, 1), said, Misuse);
  });
}

TEST_CASE("random operations in any order") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}})
    trains<Training<Drawn, AdamW, Tensor<float, Shape<4 / data, 6>>>>(mesh, numbers<float>(24));
}

TEST_CASE("a GPT whose parameters are stored split") {
  const auto tokens = numbers<int>(64, 32), targets = numbers<int>(64, 31);
  using Stored = AllStored<Training<Gpt, AdamW, Tokens, Tokens>, parallel::Stored<data>>;
  trains<Stored>({data = 2, tensor = 2}, tokens, targets);
}

TEST_CASE("images, in micro-batches too") {
  using X = Tensor<float, Shape<8 / data, 1, 4, 4>>;
  using Y = Tensor<int, Shape<8 / data>>;
  for (const Mesh& mesh : meshes) {
    trains<Training<Images, AdamW, X, Y>>(mesh, numbers<float>(128), numbers<int>(8, 5));
    trains<Accumulate<3, Training<Images, AdamW, X, Y>>>(mesh, numbers<float>(384), numbers<int>(24, 5));
  }
  using Scores = Evaluation<Images, X>;
  for (const Mesh& mesh : meshes) {
    const OwnedPlan plan = derive<Scores>(mesh);
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, Cpu> predict(plan, world, parameters);
      Eagerly<Scores, Threads, Cpu> eager(plan, world, parameters);
      const auto x = numbers<float>(128);
      const auto part = predict(x).output("result").span<const float>();
      const auto whole = eager(x).output<float>("result");
      const std::size_t at = static_cast<std::size_t>(predict.output("result").offset[0]) * 5;
      CHECK(std::vector<float>(part.begin(), part.end()) ==
            std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(at),
                               whole.begin() + static_cast<std::ptrdiff_t>(at + part.size())));
    });
  }
}

TEST_CASE("a loop over time") {
  using X = Tensor<float, Shape<5, 4 / data, 6>>;
  for (const Mesh& mesh : meshes) trains<Training<OverTime, AdamW, X>>(mesh, numbers<float>(120));
}

TEST_CASE("layers that can be shared out over stages, on one of them") {
  using Step = Training<Staged, AdamW, Tensor<float, Shape<4 / data, 6>>>;
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, stage = 1}}) trains<Step>(mesh, numbers<float>(24));
  run_threads(2, [](Threads& world) {
    const OwnedPlan plan = derive<Step>(Mesh{stage = 2}, world.rank());
    Parameters parameters(plan, world.rank(), 5);
    CHECK_THROWS_WITH((Eagerly<Step, Threads, Cpu>(plan, world, parameters)),
                      doctest::Contains("no rank of stage=2 has all layers"));
  });
}

TEST_CASE("gradients are those of the plan") {
  using X = Tensor<int, Shape<4 / data, 16>>;
  using Kept = Training<Gpt, KeepGradients, X, X>;
  const auto tokens = numbers<int>(64, 32), targets = numbers<int>(64, 31);
  for (const Mesh& mesh : meshes) {
    const OwnedPlan plan = derive<Kept>(mesh);
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, Cpu> step(plan, world, parameters);
      step.scalar("seed", 3);
      step.scalar("step", 1);
      step.scalar("clip_norm", 0);
      step(tokens, targets);

      Eager<Threads, Cpu> eager(mesh, world);
      eager.scalar("seed", 3);
      const auto model = eager.template model<Gpt>(5);
      const auto loss = model(eager.template tensor<int, Shape<4 / data, 16>>(tokens),
                              eager.template tensor<int, Shape<4 / data, 16>>(targets));
      for (const char* path : {"table", "position", "blocks.*.mlp.up", "blocks.*.mlp.up_bias", "blocks.*.attention.in",
                               "blocks.*.attention.out_bias", "last.gain"}) {
        CAPTURE(path);
        const std::vector<float> whole = eager.gradient(loss, path);
        const View own = step.output(std::string(path) + ".gradient");
        std::size_t wrong = 0;
        std::int64_t at[8]{};
        for (std::int64_t i = 0; i < own.elements(); ++i) {
          std::int64_t index = 0;
          for (int d = 0; d < own.rank; ++d) index = index * own.whole[d] + own.offset[d] + at[d];
          wrong += own.as<const float>()[i] == whole[static_cast<std::size_t>(index)] ? 0 : 1;
          for (int d = own.rank - 1; d >= 0 && ++at[d] == own.size[d]; --d) at[d] = 0;
        }
        CHECK(wrong == 0);
      }
    });
  }
}
