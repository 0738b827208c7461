// Groups of members: what is frozen stays as it is, with neither gradient nor state; a group reads numbers of its own.
#include <doctest/doctest.h>

#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int rows = 8, width = 6, depth = 4, rank = 2;
using X = Tensor<double, Shape<rows / data, width>>;

/// A matrix of a model that is there, and two small ones that are trained beside it (LoRA, Hu et al., 2021).
template <Dim in, Dim out>
struct Adapted {
  Parameter<double, Shape<in, out>> base{normal(0.4)};
  Parameter<double, Shape<in, rank>> down{normal(0.4)};
  Parameter<double, Shape<rank, out>> up{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return matmul(x, base) + matmul(matmul(x, down), up); }
};
struct Block {
  Adapted<width, 8 / tensor> in;
  Adapted<8 / tensor, width> out;
  constexpr auto operator()(Distributed auto x) const { return x + out(gelu(in(x))); }
};
template <Dim layers>
struct ModelOf {
  Parameter<double, Shape<width, width>> first{normal(0.4)};
  Layers<layers, Block> blocks;
  Parameter<double, Shape<width>> bias{zeros};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(blocks(matmul(x, first)) + bias - y));
  }
};
using Model = ModelOf<depth>;
template <class Optimizer, class M = Model>
using All = Training<M, Optimizer, X, X>;
template <class Optimizer, class M = Model>
using Adapters = Grouped<All<Optimizer, M>, Frozen<"base", "first">, Group<"last", "bias">>;
template <class Optimizer, class M = Model>
using Slow = Grouped<All<Optimizer, M>, Group<"still", "base", "first">, Group<"last", "bias">>;

std::vector<double> counted(double by) {
  std::vector<double> all(rows * width);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(by * static_cast<double>(i + 1));
  return all;
}
const std::vector<double> x = counted(0.7), y = counted(0.3);

/// All parameters of a rank, each put into a whole tensor.
void gather(const Parameters& parameters, const Plan& plan, int of_rank, std::vector<std::vector<double>>& all) {
  static std::mutex one;
  const std::lock_guard<std::mutex> lock(one);
  std::size_t at = 0;
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::parameter) continue;
    if (all.size() == at) all.emplace_back(static_cast<std::size_t>(m.type.layout.elements()));
    parameters.get(plan, of_rank, plan.graph.path(m), all[at++]);
  }
}
/// All parameters after a few steps.
template <class Program, class Numbers>
std::vector<std::vector<double>> trained(const Mesh& mesh, const Numbers& numbers) {
  std::vector<std::vector<double>> all;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    Parameters parameters(plan, world.rank(), 5);
    Trainer<Threads, CpuDouble> step(plan, world, parameters, numbers, 1);
    for (const auto& [name, value] : {std::pair{"last.learning_rate", 0.3}, {"still.learning_rate", 0.0}})
      if (step.executor().reads(name)) step.executor().scalar(name, value);
    for (int i = 0; i < 5; ++i) step(x, y);
    gather(parameters, plan, world.rank(), all);
  });
  return all;
}
/// How every program here begins.
std::vector<std::vector<double>> begun() {
  std::vector<std::vector<double>> all;
  const OwnedPlan plan = derive<All<Sgd>>(Mesh{data = 1});
  gather(Parameters(plan, 0, 5), plan, 0, all);
  return all;
}

template <class Program>
constexpr std::int64_t states() {
  std::int64_t count = 0;
  for (const Member& m : build<Program>().members) count += m.role == Role::state;
  return count;
}

}  // namespace

TEST_CASE("names in a path stand one behind the other") {
  for (const char* names : {"blocks", "*", "mlp", "up", "blocks.*", "*.mlp.up", "mlp.up", "blocks.*.mlp.up"})
    CHECK(has_names("blocks.*.mlp.up", names));
  for (const char* names : {"", "block", "locks", "u", "mlp.", ".up", "up.mlp", "blocks.mlp", "blocks.*.mlp.up.mean"})
    CHECK(!has_names("blocks.*.mlp.up", names));
}

TEST_CASE("what is frozen has no state, no gradient is computed or reduced for it") {
  static_assert(states<All<AdamW>>() == 2 * 8);
  static_assert(states<Adapters<AdamW>>() == 2 * 5);
  constexpr Mesh mesh{data = 2};
  constexpr auto& all = plan<All<AdamW>, mesh>;
  constexpr auto& some = plan<Adapters<AdamW>, mesh>;
  constexpr std::int64_t frozen = 8 * (width * width + depth * 2 * width * 8);
  constexpr std::int64_t rounded = 2 * (64 - 8 * width * width % 64);  // states begin at multiples of 64 bytes
  static_assert(all.memory.of(Use::optimizer_state) - some.memory.of(Use::optimizer_state) == 2 * frozen + rounded);
  static_assert(all.backward.elements(all_reduce(data)) - some.backward.elements(all_reduce(data)) == frozen / 8);
  static_assert(some.flops() < all.flops());
}

TEST_CASE("frozen is as it began, what is beside it as if that had no learning rate, by every optimizer's numbers") {
  const auto first = begun();
  const auto check = [&]<class Optimizer>(const Optimizer*) {
    typename Optimizer::Hyperparameters numbers;
    numbers.learning_rate = 0.05;
    numbers.weight_decay = 0.01;
    const auto some = trained<Adapters<Optimizer>>(Mesh{data = 1}, numbers),
               still = trained<Slow<Optimizer>>(Mesh{data = 1}, numbers);
    REQUIRE(some.size() == 8);
    CHECK(some == still);
    for (const std::size_t base : {0U, 1U, 4U}) CHECK(some[base] == first[base]);
    for (const std::size_t other : {2U, 3U, 5U, 6U, 7U}) CHECK(some[other] != first[other]);
    const auto one_rate = trained<Grouped<All<Optimizer>, Frozen<"base", "first">>>(Mesh{data = 1}, numbers);
    CHECK(one_rate[7] != some[7]);  // the bias, whose rate is its own
  };
  check(static_cast<Sgd*>(nullptr));
  check(static_cast<Momentum*>(nullptr));
  check(static_cast<AdamW*>(nullptr));
  check(static_cast<Lion*>(nullptr));
}

TEST_CASE("a group's rate is its own: one step of gradient descent by hand") {
  const auto first = begun();
  const OwnedPlan kept = derive<All<KeepGradients>>(Mesh{data = 1});
  std::vector<double> gradient(width);
  run_threads(1, [&](Threads& world) {
    Parameters parameters(kept, 0, 5);
    Executor<Threads, CpuDouble> step(kept, world, parameters);
    const View g = step(x, y).output("bias.gradient");
    std::copy_n(g.as<const double>(), width, gradient.begin());
  });
  const OwnedPlan plan = derive<Adapters<Sgd>>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 5);
    Trainer<Threads, CpuDouble> step(plan, world, parameters, Sgd::Hyperparameters{.learning_rate = 0.05}, 1);
    step.executor().scalar("last.learning_rate", 0.3);
    step(x, y);
    std::vector<double> bias(width);
    parameters.get(plan, 0, "bias", bias);
    for (std::size_t i = 0; i < width; ++i) CHECK(bias[i] == doctest::Approx(-0.3 * gradient[i]).epsilon(1e-14));
  });
}

template <class Program>
void check_mesh(const Mesh& mesh) {
  INFO(text(mesh));
  const AdamW::Hyperparameters numbers{.learning_rate = 0.05, .clip_norm = 0.5};
  const auto one = trained<Adapters<AdamW>>(Mesh{data = 1}, numbers), many = trained<Program>(mesh, numbers);
  REQUIRE(one.size() == many.size());
  for (std::size_t p = 0; p < one.size(); ++p)
    for (std::size_t i = 0; i < one[p].size(); ++i) CHECK(many[p][i] == doctest::Approx(one[p][i]).epsilon(1e-9));
}
TEST_CASE("groups train alike on every mesh, stored split, computed again, in micro-batches and over stages") {
  check_mesh<Adapters<AdamW>>(Mesh{data = 2});
  check_mesh<Adapters<AdamW>>(Mesh{data = 2, tensor = 2});
  check_mesh<AllStored<Adapters<AdamW>, Stored<data>>>(Mesh{data = 2, tensor = 2});
  check_mesh<AllStored<Adapters<AdamW>, Stored<data, Zero::gradients>>>(Mesh{data = 4});
  check_mesh<Adapters<AdamW, ModelOf<depth / stage>>>(Mesh{stage = 2, data = 2});
}
