// Programs at the edges: parameters that enter Broadcast, storage apart from use, wanted gradients under accumulation,
// blocks used twice.
#include <doctest/doctest.h>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;

namespace {

constexpr int rows = 8, width = 8;
using Batch = Tensor<double, Shape<rows / data, width>>;

struct Resting {  // one parameter is declared Broadcast, one is stored split, one is both
  Parameter<double, Shape<width, width>, On<tensor, Broadcast>> broadcast{normal(0.4)};
  Parameter<double, Shape<width, width>, Stored<data, Split<0>>> stored{normal(0.4)};
  Parameter<double, Shape<width, 2 * width / tensor>, Stored<data, Split<1>>> up{normal(0.4)};
  Parameter<double, Shape<2 * width / tensor, width>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = x + matmul(gelu(matmul(x, broadcast)), stored);
    return mean(square(matmul(relu(matmul(h, up)), down) - y));
  }
};
struct Twice {  // one stack of layers, gone through twice, with an operand from outside that has a gradient
  struct Block {
    Parameter<double, Shape<width, width / tensor>> up{normal(0.4)};
    Parameter<double, Shape<width / tensor, width>> down{normal(0.4)};
    constexpr auto operator()(Distributed auto x, Distributed auto added) const {
      return x + (matmul(gelu(matmul(x, up)), down) + added);
    }
  };
  Parameter<double, Shape<width>> shift{normal(0.4)};
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(blocks(blocks(to<Shape<rows / data, width>>(x), shift), shift) - y));
  }
};

struct Largest {
  constexpr auto operator()(Distributed auto x) const { return mean(max<1>(x)); }
};
struct OfClasses {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean_cross_entropy(x, y); }
};
struct Scatter {
  Parameter<double, Shape<3>> w{normal(1)};
  constexpr auto operator()(Distributed auto index, Distributed auto x) const {
    return sum(square(scatter_add<0>(x, index - constant<int, Shape<3>>(2), w)));
  }
};

/// Outputs of one step with an optimizer that keeps gradients, and the parameters after four steps of AdamW.
template <class Model, int m = 1, class Input = Batch>
std::vector<Array> all(const Mesh& mesh) {
  const auto x = program::numbers<double>(m * rows * width, 1), y = program::numbers<double>(m * rows * width, 2);
  const auto feed = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  std::vector<Array> results =
      program::outputs<Accumulate<m, Training<Model, KeepGradients, Input, Batch>>>(mesh, feed);
  const OwnedPlan plan = derive<Accumulate<m, Training<Model, AdamW, Batch, Batch>>>(mesh);
  std::vector<Array> parameters;
  for (const Member& member : plan->graph.members) {
    if (member.role != Role::parameter) continue;
    std::vector<std::int64_t> size;
    for (const Dim& d : member.type.layout.dims) size.push_back(d.size);
    parameters.push_back(lockstep::zeros(size));
  }
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters mine(plan, world.rank(), 5);
    Trainer<Threads, under_test::Device> trainer(plan, world, mine,
                                                 {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
    feed(trainer.executor());
    for (int step = 0; step < 4; ++step) trainer.step(1e-2);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      world.barrier();
      std::size_t at = 0;
      for (const Member& member : plan->graph.members)
        if (member.role == Role::parameter) {
          if (rank == world.rank()) mine.get(plan, rank, plan->graph.path(member), parameters[at].data);
          ++at;
        }
    }
  });
  results.insert(results.end(), parameters.begin(), parameters.end());
  return results;
}

template <class Model, int m = 1, class Input = Batch>
void compare(std::size_t outputs) {
  const std::vector<Array> one = all<Model, m, Input>(Mesh{data = 1});
  CHECK(one.size() == outputs);
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}, Mesh{data = 4}}) {
    INFO(text(mesh));
    const std::vector<Array> many = all<Model, m, Input>(mesh);
    REQUIRE(many.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("value " << i);
      CHECK(lockstep::difference(many[i], one[i]) < 1e-9);
    }
  }
}

struct Nothing {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(x - y)); }
};

}  // namespace

TEST_CASE("parameters that enter Broadcast or are stored split train as on one rank") { compare<Resting>(2 + 4 + 4); }
TEST_CASE("storage is one transition: gathered to where it enters, its gradient scattered") {
  constexpr auto& planned = plan<Training<Resting, AdamW, Batch, Batch>, Mesh{data = 2, tensor = 2}>;
  static_assert(planned.forward.collectives(data, Collective::all_gather) == 2);
  static_assert(planned.backward.collectives(data, Collective::reduce_scatter) == 2);
}
TEST_CASE("layers gone through twice, with a captured operand") {
  compare<Twice>(2 + 3 + 3);
  compare<Twice, 2>(2 + 3 + 3);
}
TEST_CASE("wanted gradients of inputs, also under accumulation and Broadcast") {
  compare<Resting, 1, Wanted<double, Shape<rows / data, width>>>(2 + 4 + 1 + 4);
  compare<Resting, 2, Wanted<double, Shape<rows / data, width>>>(2 + 4 + 1 + 4);
  compare<Resting, 1, Wanted<double, Shape<rows / data, width>, On<tensor, Broadcast>>>(2 + 4 + 1 + 4);
}
TEST_CASE("a training without parameters has the norm of nothing") {
  const auto x = program::numbers<double>(rows * width, 1), y = program::numbers<double>(rows * width, 2);
  const auto feed = [&](auto& executor) {
    executor.input(0, x);
    executor.input(1, y);
  };
  const auto outputs = program::outputs<Training<Nothing, AdamW, Wanted<double, Shape<rows / data, width>>, Batch>>(
      Mesh{data = 2}, feed);
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[1].data[0] == 0);
}
TEST_CASE("also of float, on a device with kernels for float alone") {
  const OwnedPlan plan =
      derive<Training<Largest, KeepGradients, Wanted<float, Shape<rows / data, width>>>>(Mesh{data = 2});
  run_threads(2, [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, Cpu> step(plan, world, parameters);
    CHECK(step(std::vector<float>(rows * width, 0.5F)).output_scalar("loss") == 0.5);
    CHECK(step.output_scalar("gradient_norm") == 0);
  });
}
TEST_CASE("a class that is impossible has an infinite loss, not no number") {
  using Program = Evaluation<OfClasses, Tensor<float, Shape<2, 4 / tensor>>, Tensor<int, Shape<2>>>;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Mesh& mesh : {Mesh{tensor = 1}, Mesh{tensor = 2}}) {
    const OwnedPlan plan = derive<Program>(mesh);
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 1);
      Executor<Threads, Cpu> loss(plan, world, parameters);
      const auto of = [&](int target) {
        const std::vector<float> logits{-infinity, 0, 0, 0, 0, -infinity, 0, 0};
        return loss(logits, std::vector<int>{target, 3}).output_scalar("result");
      };
      CHECK(of(0) == infinity);
      CHECK(of(1) == doctest::Approx(std::log(3)));
    });
  }
}
TEST_CASE("what is added nowhere has no gradient") {
  const OwnedPlan plan =
      derive<Training<Scatter, KeepGradients, Tensor<int, Shape<3>>, Tensor<double, Shape<4>>>>(Mesh{});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 1);
    parameters.set(plan, 0, "w", std::vector<double>{5, 6, 7});
    Executor<Threads, CpuDouble> step(plan, world, parameters);
    const View g = step(std::vector<int>{0, 3, 9}, std::vector<double>{1, 2, 3, 4}).output("w.gradient");
    CHECK(std::vector<double>(g.as<const double>(), g.as<const double>() + 3) ==
          std::vector<double>{0, 2 * (2 + 6), 0});
  });
}
TEST_CASE("an input of another element type is refused") {
  const OwnedPlan plan = derive<Evaluation<Nothing, Batch, Batch>>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    const std::vector<float> wrong(rows * width);
    CHECK_THROWS_AS(executor.input(0, wrong), Misuse);
  });
}
