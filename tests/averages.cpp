// Averages of weights: those of a loop that adds up, on every mesh and however they are stored, and PyTorch's
// (tools/fixtures/loop.py); what is evaluated by them, and what is kept of them.
#include <atomic>
#include <map>
#include <utility>

#include <doctest/doctest.h>

#include <parallel/model/averaged.hpp>
#include <parallel/run/averages.hpp>
#include <parallel/run/whole_tensor.hpp>

#include "fixture.hpp"
#include "kept.hpp"

using namespace kept;

namespace {

constexpr int steps = 7;
using Tensors = std::map<std::string, std::vector<double>>;

template <class Optimizer>
using Plain = Training<ModelOf<depth>, Optimizer, X, X>;
template <class Optimizer>
using Pipe = Training<ModelOf<depth / stage>, Optimizer, X, X>;
using Loss = Evaluation<ModelOf<depth>, X, X>;
using LossOfPipe = Evaluation<ModelOf<depth / stage>, X, X>;

/// Parameters behind each step, or averages behind the last, of all ranks together.
struct Seen {
  std::vector<Tensors> behind = std::vector<Tensors>(steps);
  Tensors averages{};
  double loss = 0;  // by the averages
};
template <class Program, class Evaluation = Loss>
Seen seen(const Mesh& mesh, double decay, int from) {
  Seen all;
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank()),
                    evaluation = derive<Evaluation, Program>(mesh, world.rank());
    Parameters parameters(plan, world.rank(), 5), averages(plan, world.rank(), 6);
    Trainer<Threads, CpuDouble> step(plan, world, parameters, AdamW::Hyperparameters{.learning_rate = 0.02}, 1);
    step.executor().scalar("average_decay", decay);
    step.executor().scalar("average_from", from);
    const auto take = [&](const Parameters& of, Tensors& to) {
      for (int rank = 0; rank < world.size(); ++rank, world.barrier())
        if (rank == world.rank())
          for (const NamedTensor& t : step.executor().tensors())
            if (t.role == Role::parameter) {
              to[t.name].resize(static_cast<std::size_t>(t.type.layout.elements()));
              of.get(plan, rank, t.name, to[t.name]);
            }
    };
    for (int i = 0; i < steps; ++i) {
      step(batch(i, 0.7), batch(i, 0.3));
      take(parameters, all.behind[static_cast<std::size_t>(i)]);
    }
    for (const NamedTensor& t : step.executor().tensors()) {  // what all ranks fill together, each has
      static Tensors filled;
      if (world.rank() == 0) filled[t.name].assign(static_cast<std::size_t>(t.type.layout.elements()), 0);
      for (int rank = 0; rank <= world.size(); ++rank, world.barrier())
        if (rank == world.rank() + 1) step.executor().get(t.name, filled[t.name]);
      INFO(text(mesh) << ", rank " << world.rank() << ": " << t.name);
      CHECK(whole_tensor<double>(world, step.executor(), t.name) == filled[t.name]);
      world.barrier();
    }
    take_averages(world, step.executor(), averages);
    take(averages, all.averages);
    Executor<Threads, CpuDouble> test(evaluation, world, averages);
    const double loss = test(batch(1, 0.7), batch(1, 0.3)).output_scalar("result");
    CHECK(whole_tensor<double>(world, test, "result") == std::vector{loss});
    CHECK_THROWS_WITH_AS(whole_tensor<float>(world, step.executor(), "in"),
                         doctest::Contains("but f32 was given; give elements of its type"), Misuse);
    CHECK_THROWS_WITH_AS(whole_tensor<double>(world, step.executor(), "out_of_it"), doctest::Contains("out_of_it"),
                         Misuse);
    if (world.rank() == 0) all.loss = loss;
  });
  return all;
}
/// What each step weighs in the average behind the last.
std::vector<double> weights(Average how, double decay, int from) {
  std::vector<double> all(steps);
  for (int t = 1; t <= steps; ++t) {
    const int n = t - from + 1;
    if (n <= 1) all.assign(steps, 0);
    if (n <= 1 || how == Average::corrected) {
      for (double& w : all) w *= decay;
      all[static_cast<std::size_t>(t - 1)] = 1;
    } else {
      for (double& w : all) w *= decay;
      all[static_cast<std::size_t>(t - 1)] = 1 - decay;
    }
  }
  double sum = 0;
  for (const double w : all) sum += w;
  for (double& w : all) w /= sum;
  return all;
}
void check_near(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& one : a) {
    CAPTURE(one.first);
    CHECK(near(one.second, b.at(one.first)));
  }
}
template <Average how, class Program, class Evaluation = Loss>
void check(const std::vector<Mesh>& meshes, const Seen& one, double decay, int from) {
  for (const Mesh& mesh : meshes) {
    CAPTURE(text(mesh));
    const Seen all = seen<Program, Evaluation>(mesh, decay, from);
    const std::vector<double> weighs = weights(how, decay, from);
    Tensors expected;
    for (const auto& [name, last] : all.behind.back()) {
      std::vector<double>& sum = expected[name];
      sum.resize(last.size());
      for (std::size_t t = 0; t < weighs.size(); ++t)
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weighs[t] * all.behind[t].at(name)[i];
    }
    CHECK(all.averages.size() == 5);
    check_near(expected, all.averages);
    check_near(one.averages, all.averages);
    CHECK(all.loss == doctest::Approx(one.loss).epsilon(1e-12));
  }
}
template <Average how>
void check_ways(double decay, int from) {
  CAPTURE(decay);
  CAPTURE(from);
  using By = Averaged<AdamW, how>;
  const Seen one = seen<Plain<By>>(Mesh{data = 1}, decay, from);
  const std::vector<Mesh> on_data{{data = 2}, {data = 4}, {data = 2, tensor = 2}};
  check<how, Plain<By>>({{data = 1}, {data = 2}, {data = 4}, {tensor = 2}, {data = 2, tensor = 2}}, one, decay, from);
  check<how, AllStored<Plain<By>, Stored<data, Zero::states>>>(on_data, one, decay, from);
  check<how, AllStored<Plain<By>, Stored<data, Zero::gradients>>>(on_data, one, decay, from);
  check<how, AllStored<Plain<By>, Stored<data>>, AllStored<Loss, Stored<data>>>(on_data, one, decay, from);
  check<how, AllStored<Plain<By>, Stored<data, Zero::states>, Stored<tensor, Zero::states>>>({{data = 2, tensor = 2}},
                                                                                             one, decay, from);
  check<how, AllStored<Plain<By>, Stored<host>>, AllStored<Loss, Stored<host>>>({{data = 2}}, one, decay, from);
  check<how, Pipe<By>, LossOfPipe>({{stage = 2}, {stage = 2, data = 2}}, one, decay, from);
  check<how, AllStored<Pipe<By>, Stored<data, Zero::states>>, LossOfPipe>({{stage = 2, data = 2}}, one, decay, from);
}

/// One weight, whose path and averages PyTorch knows.
struct Weight {
  Parameter<double, Shape<1>> w{normal(0)};
  constexpr auto operator()(Distributed auto t, Distributed auto two) const { return sum(square(w * t - two)); }
};
template <Average how>
void check_like(const char* name, double decay, int from) {
  CAPTURE(name);
  using One = Tensor<double, Shape<1>>;
  const OwnedPlan plan = derive<Training<Weight, Averaged<Sgd, how>, One, One>>(Mesh{});
  const std::vector<double> path = fixture().values<double>("average/path"),
                            expected = fixture().values<double>(std::string("average/") + name);
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plan, 0, 5);
    parameters.set(plan, 0, "w", 0.5);
    Trainer<Threads, CpuDouble> step(plan, world, parameters, Sgd::Hyperparameters{}, 1);
    step.executor().scalar("average_decay", decay);
    step.executor().scalar("average_from", from);
    for (std::size_t i = 0; i < path.size(); ++i) {
      const double t = static_cast<double>(i + 1);
      step.executor().input(0, t);
      step.executor().input(1, 2.0);
      step.step(0.25 / (t * t));
      double w = 0, average = 0;
      step.executor().get("w", w);
      step.executor().get("w.average", average);
      CHECK(w == doctest::Approx(path[i]).epsilon(1e-13));
      CHECK(average == doctest::Approx(expected[i]).epsilon(1e-13));
    }
  });
}

/// Threads that count how often they are split.
struct Counting : Threads {
  explicit Counting(Threads&& ranks) : Threads(std::move(ranks)) {}
  Counting split(int color, int key) {
    ++splits;
    return Counting(Threads::split(color, key));
  }
  static inline std::atomic<int> splits{0};
};

}  // namespace

TEST_CASE("an average is that of a loop which adds up, on every mesh, however it is stored") {
  check_ways<Average::exponential>(0.8, 1);
  check_ways<Average::corrected>(1, 3);
}
TEST_CASE("averages are PyTorch's, of each step") {
  check_like<Average::exponential>("exponential", 0.9, 1);
  check_like<Average::corrected>("alike", 1, 1);
  check_like<Average::corrected>("alike_from_4", 1, 4);
}
TEST_CASE("averages that begin later, and are corrected") {
  const Seen one = seen<Plain<Averaged<AdamW, Average::corrected>>>(Mesh{data = 1}, 0.7, 1),
             late = seen<Plain<Averaged<AdamW>>>(Mesh{data = 1}, 0.7, 4);
  check<Average::corrected, Plain<Averaged<AdamW, Average::corrected>>>({{data = 2}}, one, 0.7, 1);
  check<Average::exponential, Plain<Averaged<AdamW>>>({{tensor = 2}}, late, 0.7, 4);
}
TEST_CASE("where nothing is averaged, and what is remembered besides") {
  const OwnedPlan plain = derive<Plain<AdamW>>(Mesh{data = 1}), plan = derive<Plain<Averaged<AdamW>>>(Mesh{data = 1});
  CHECK(plan->memory.of(Use::optimizer_state) == 3 * plan->memory.of(Use::parameters));
  CHECK(plain->memory.of(Use::optimizer_state) == 2 * plain->memory.of(Use::parameters));
  run_threads(1, [&](Threads& world) {
    Parameters parameters(plain, 0, 5), averages(plain, 0, 5);
    Executor<Threads, CpuDouble> executor(plain, world, parameters);
    CHECK_THROWS_WITH_AS(take_averages(world, executor, averages),
                         doctest::Contains("the program's optimizer remembers no averages"), Misuse);
  });
}
TEST_CASE("parameters whose averages are gathered over the same axes share a group of ranks") {
  using Program = AllStored<Plain<Averaged<AdamW>>, Stored<data, Zero::states>>;
  run_threads(2, [&](Threads& ranks) {
    Counting world(ranks.split(0, ranks.rank()));
    const OwnedPlan plan = derive<Program>(Mesh{data = 2});
    ParametersIn<MemoryOf<CpuDouble>> parameters(plan, world.rank(), 5), averages(plan, world.rank(), 6);
    Executor<Counting, CpuDouble> executor(plan, world, parameters);
    world.barrier();
    if (world.rank() == 0) Counting::splits = 0;
    world.barrier();
    take_averages(world, executor, averages);
    world.barrier();
    CHECK(Counting::splits.load() == 2);  // once on each rank, for five parameters
  });
}
TEST_CASE("a training that goes on from a checkpoint has its averages") {
  using Program = Plain<Averaged<AdamW>>;
  const Folder folder;
  const std::vector<double> all = train<Program>(folder.path, Mesh{data = 2}, 6, 3);
  const Safetensors file(folder.path + "/step-000000000003.safetensors");
  CHECK(file.contains("blocks.*.up.average"));
  CHECK(near(train<Program>(folder.path, Mesh{data = 2, tensor = 2}, 6, 0), behind(all, 3)));
}
