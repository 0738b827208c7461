// What runs may outlive what it was made of: it keeps the plan and the parameters; without the communicator a step is
// one sentence, as with another rank's, or by two threads at once.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/checked.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/eager.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

struct Model {
  Parameter<float, Shape<4, 3>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(cross_entropy(matmul(x, w), y));
  }
};
using Step = Training<Model, AdamW, Tensor<float, Shape<8 / data, 4>>, Tensor<int, Shape<8 / data>>>;
const std::vector<float> x = [] {
  std::vector<float> all(32);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i % 7) - 3;
  return all;
}();
const std::vector<int> y{0, 1, 2, 0, 1, 2, 0, 1};
constexpr Mesh two{data = 2};

/// All but the communicator ends with this function.
template <class World>
std::unique_ptr<Trainer<World, Cpu>> made(World& world) {
  const auto local = derive<Step>(two);
  Parameters parameters(local, world.rank(), 1);
  return std::make_unique<Trainer<World, Cpu>>(local, world, parameters, AdamW::Hyperparameters{.learning_rate = 1e-2},
                                               1);
}
double after_three_steps(Trainer<Threads, Cpu>& trainer) {
  trainer(x, y);
  trainer(x, y);
  return trainer(x, y).loss;
}
/// What is thrown.
template <class F>
std::string said_by(F f) {
  try {
    f();
  } catch (const Failure& failure) {
    CHECK(failure.exit_code == 70);
    return failure.what();
  }
  return "";
}
const std::string no_communicator =
    "a step is asked of an executor whose communicator is there no more; make executors and trainers within "
    "run_threads(...) or run_mpi(...), behind the communicator, and use them there";
const std::string no_plan =
    "the plan is a copy of one that was derived and is there no more; keep what derive gives, const auto plan = "
    "derive<Step>(mesh)";

}  // namespace

TEST_CASE("a trainer keeps its plan and its parameters") {
  run_threads(2, [&](Threads& world) {
    const auto there = derive<Step>(two);
    Parameters parameters(there, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(there, world, parameters, {.learning_rate = 1e-2}, 1);
    const double expected = after_three_steps(trainer);
    const auto alone = made(world);
    const std::vector<std::vector<char>> used_again(300, std::vector<char>(500, 'x'));
    CHECK(after_three_steps(*alone) == expected);
  });
}
TEST_CASE("what was moved away is still a plan, and a copy that nothing keeps is a sentence") {
  auto first = derive<Step>(two);
  const auto second = std::move(first);
  CHECK(text(first.get()) == text(second.get()));
  const Plan copy = [] {
    const auto local = derive<Step>(two);
    return *local;
  }();
  CHECK(said_by([&] { Parameters(copy, 0, 1); }) == no_plan);
  const Plan of_a_temporary = derive<Step>(two);
  CHECK(said_by([&] { Parameters(of_a_temporary, 0, 1); }) == no_plan);
  run_threads(2, [&](Threads& world) {
    Parameters parameters(second, world.rank(), 1);
    CHECK(said_by([&] { Executor<Threads, Cpu> executor(copy, world, parameters); }) == no_plan);
    CHECK(said_by([&] { parameters.set(copy, world.rank(), "w", x); }) == no_plan);
    CHECK(said_by([&] { Trainer<Threads, Cpu> trainer(copy, world, parameters, {.learning_rate = 1e-2}, 1); }) ==
          no_plan);
  });
}
TEST_CASE("a step without its communicator is a sentence") {
  std::unique_ptr<Trainer<Threads, Cpu>> kept[2];
  std::unique_ptr<Trainer<Checked<Threads>, Cpu>> checked[2];
  run_threads(2, [&](Threads& threads) {
    const auto rank = static_cast<std::size_t>(threads.rank());
    kept[rank] = made(threads);
    Checked<Threads> world(threads);
    checked[rank] = made(world);
    (*checked[rank])(x, y);
  });
  CHECK(said_by([&] { (*kept[0])(x, y); }) == no_communicator);
  CHECK(said_by([&] { kept[1]->executor()(x, y); }) == no_communicator);
  CHECK(said_by([&] { (*checked[1])(x, y); }) == no_communicator);
}
TEST_CASE("an eager session without its communicator is a sentence") {
  std::unique_ptr<Eager<Threads, Cpu>> kept;
  run_threads(1, [&](Threads& world) { kept = std::make_unique<Eager<Threads, Cpu>>(Mesh{data = 1}, world); });
  CHECK(said_by([&] { kept->tensor<float, Shape<32>>(x); }) ==
        "an eager session is used whose communicator is there no more; make it within run_threads(...) or "
        "run_mpi(...), and use it there");
}
TEST_CASE("a communicator that was moved away is a sentence") {
  CHECK(said_by([] {
          run_threads(1, [](Threads& world) {
            const Threads other = std::move(world);
            const auto local = derive<Step>(Mesh{data = 1});
            Parameters parameters(local, 0, 1);
            Executor<Threads, Cpu> executor(local, world, parameters);
            CHECK(said_by([&] { executor(x, y); }) == no_communicator);
          });
        }) == "a communicator is used that was moved away; hand it on as Threads&, or use what it was moved to");
}
TEST_CASE("a communicator is used by its own rank's thread, a trainer by one thread at once") {
  CHECK(said_by([] {
          Threads* of_rank_0 = nullptr;
          run_threads(2, [&](Threads& world) {
            if (world.rank() == 0) of_rank_0 = &world;
            world.barrier();
            if (world.rank() == 1) of_rank_0->barrier();
            world.barrier();
          });
        }) ==
        "the communicator of rank 0 of 2 is used by the thread of rank 1; let each rank use the one that it was given, "
        "and what it made of it");
  run_threads(1, [](Threads& world) {
    const auto local = derive<Step>(Mesh{data = 1});
    Parameters parameters(local, 0, 1);
    Trainer<Threads, Cpu> trainer(local, world, parameters, {.learning_rate = 1e-2}, 1);
    trainer(x, y);
    std::thread([&] { trainer(x, y); }).join();  // another thread, but not at once
    const auto together = [](auto& one, auto& other) {
      std::atomic<bool> done = false;
      const auto steps = [&](auto& executor) {
        const std::string said = said_by([&] {
          for (int i = 0; i < 1'000'000 && !done; ++i) executor.run();
        });
        done = true;
        return said;
      };
      std::string first, second;
      std::thread there([&] { first = steps(one); });
      second = steps(other);
      there.join();
      return first + second;
    };
    CHECK(together(trainer.executor(), trainer.executor()) ==
          "a step of an executor or a trainer is called by two threads at once; let the thread of its rank alone call "
          "it");
    Trainer<Threads, Cpu> beside(local, world, parameters, {.learning_rate = 1e-2}, 1);
    beside(x, y);
    CHECK(together(trainer.executor(), beside.executor()) ==
          "a step of an executor or a trainer on one communicator is called by two threads at once; let the thread of "
          "its rank alone call it");
  });
}
