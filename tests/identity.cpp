// Executors of one plan, and parameters of one model, are told apart: ranks that use them in another order are told so,
// and ranks that made others before, on some of the ranks alone, are not.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/checked.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/operation/remember.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

struct Model {
  Parameter<float, Shape<4, 8 / tensor>> up{normal(0.3)};
  Parameter<float, Shape<8 / tensor, 4>> down{normal(0.3)};
  Parameter<float, Shape<4>> bias{zeros};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(gelu(matmul(x, up)), down) + bias)); }
};
using Inputs = Tensor<float, Shape<8 / data, 4>>;
/// The same but for one initializer.
struct Ones {
  Parameter<float, Shape<4, 8 / tensor>> up{normal(0.3)};
  Parameter<float, Shape<8 / tensor, 4>> down{normal(0.3)};
  Parameter<float, Shape<4>> bias{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(gelu(matmul(x, up)), down) + bias)); }
};
struct InStages {
  struct Block {
    Parameter<float, Shape<4, 4>> w{normal(0.3)};
    constexpr auto operator()(Distributed auto y) const { return y + gelu(matmul(y, w)); }
  };
  Parameter<float, Shape<4, 4>> in{normal(0.3)};
  Layers<2 / stage, Block> blocks{};
  constexpr auto operator()(Distributed auto y) const { return mean(square(blocks(matmul(y, in)))); }
};
struct Remembering {
  Parameter<float, Shape<4>> gain{ones};
  constexpr auto operator()(Distributed auto x, Distributed auto position) const {
    return mean(remember<0, 8>(x * gain, position));
  }
};
using Step = Training<Model, AdamW, Inputs>;
using Look = Evaluation<Model, Inputs>;

using Running = Executor<Threads, Cpu>;
using Training_ = Trainer<Threads, Cpu>;

/// What all ranks are told, by the same words; "" where the run ends well. `rank_does(world)`.
template <class F>
std::string told(int ranks, F rank_does) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks));
  try {
    run_threads(
        ranks,
        [&](Threads& world) {
          try {
            rank_does(world);
            agreeing::end(world);
          } catch (const Failure& error) {
            all[static_cast<std::size_t>(world.rank())] = std::to_string(error.exit_code) + " " + error.what();
            throw;
          }
        },
        std::chrono::seconds(10));
  } catch (const Failure&) {
  }
  for (const std::string& sentence : all) CHECK(sentence == all[0]);
  return all[0];
}
bool has(const std::string& sentence, const std::string& part) {
  INFO(sentence);
  CHECK(sentence.find(part) != std::string::npos);
  return sentence.find(part) != std::string::npos;
}

const std::vector<float> x(32, 0.5f);
std::vector<float> all_of(float value) { return std::vector<float>(4, value); }

const Mesh meshes[] = {Mesh{data = 2, tensor = 1}, Mesh{data = 1, tensor = 2}, Mesh{data = 2, tensor = 2}};

}  // namespace

TEST_CASE("two evaluations of one plan, of other parameters, made or run in another order on one rank") {
  for (const Mesh& mesh : meshes) {
    const OwnedPlan plan = derive<Look, Step>(mesh);
    // On the last rank in the other order. Both begin from one seed; a member that every rank holds whole is set.
    const auto run = [&](bool made_swapped, bool run_swapped) {
      return told(mesh.ranks(), [&](Threads& world) {
        const bool last = world.rank() == world.size() - 1;
        Parameters one(*plan, world.rank(), 1), two(*plan, world.rank(), 1);
        one.set(*plan, world.rank(), "bias", all_of(1));
        two.set(*plan, world.rank(), "bias", all_of(2));
        const bool swapped = made_swapped && last;
        Running first(*plan, world, swapped ? two : one), second(*plan, world, swapped ? one : two);
        first.input(0, x);
        second.input(0, x);
        (run_swapped && last ? second : first).run();
        (run_swapped && last ? first : second).run();
        CHECK(first.output_scalar(0) != second.output_scalar(0));
      });
    };
    CHECK(run(false, false) == "");
    const std::string made = run(true, false), ran = run(false, true);
    CHECK(made.starts_with("76 "));
    has(made, "not alike at the beginning of an evaluation (identity.cpp:");
    has(made, "parameters that were set of rank");
    CHECK(ran.starts_with("76 "));
    has(ran, "not alike at step 1 of an evaluation (");
    has(ran, "executor of rank");
    has(ran, "number ");
    has(ran, ", made at identity.cpp:");
    has(ran, "let all ranks step the same executor in the same order");
  }
}

TEST_CASE("two evaluations of the same parameters, on other inputs, run in another order on one rank") {
  const Mesh mesh{data = 2, tensor = 2};
  const OwnedPlan plan = derive<Look, Step>(mesh);
  const auto run = [&](bool swapped) {
    return told(4, [&](Threads& world) {
      Parameters parameters(*plan, world.rank(), 1);
      Running first(*plan, world, parameters), second(*plan, world, parameters);
      first.input(0, x);
      second.input(0, std::vector<float>(32, 2.0f));
      (swapped && world.rank() == 3 ? second : first).run();
      (swapped && world.rank() == 3 ? first : second).run();
    });
  };
  CHECK(run(false) == "");
  has(run(true), "executor of ranks 0, 1, 2 and of rank 3: number ");
}

TEST_CASE("two trainings of one plan, stepped in another order on one rank") {
  for (const Mesh& mesh : meshes) {
    const OwnedPlan plan = derive<Step>(mesh);
    const std::string said = told(mesh.ranks(), [&](Threads& world) {
      Parameters one(*plan, world.rank(), 1), two(*plan, world.rank(), 1);
      Training_ first(*plan, world, one, {}, 1), second(*plan, world, two, {}, 1);
      first.executor().input(0, x);
      second.executor().input(0, x);
      first.step();
      second.step();
      (world.rank() == 0 ? second : first).step();
    });
    CHECK(said.starts_with("76 "));
    has(said, "not alike at step 2 of a training");
    has(said, "executor of rank 0 and of rank");
  }
}

TEST_CASE("parameters that were trained apart are told apart, also when they began alike") {
  const Mesh mesh{data = 2, tensor = 1};
  const OwnedPlan plan = derive<Step>(mesh), looking = derive<Look, Step>(mesh);
  const auto run = [&](bool swapped) {
    return told(2, [&](Threads& world) {
      Parameters one(*plan, world.rank(), 1), two(*plan, world.rank(), 1);
      Training_ first(*plan, world, one, {}, 1), second(*plan, world, two, {}, 1);
      first.executor().input(0, x);
      second.executor().input(0, x);
      first.step();
      second.step();
      second.step();
      Running(*looking, world, swapped && world.rank() == 1 ? two : one).input(0, x);
    });
  };
  CHECK(run(false) == "");
  const std::string said = run(true);
  has(said, "training of the parameters of rank 0 and of rank 1: 1 steps, the last by executor ");
  has(said, ", made at identity.cpp:");
  // and where the evaluations were made before the trainings, which get the parameters in another order on a rank
  const auto made_before = [&](bool swapped) {
    return told(2, [&](Threads& world) {
      Parameters one(*plan, world.rank(), 1), two(*plan, world.rank(), 1);
      Running of_one(*looking, world, one), of_two(*looking, world, two);
      const bool other = swapped && world.rank() == 1;
      Training_ first(*plan, world, other ? two : one, {}, 1), second(*plan, world, other ? one : two, {}, 1);
      first.executor().input(0, x);
      of_one.input(0, x);
      for (int step = 0; step < 3; ++step) first.step();
      of_one.run();
    });
  };
  CHECK(made_before(false) == "");
  const std::string before = made_before(true);
  has(before, "not alike at step 1 of an evaluation");
  has(before, "training of the parameters of rank 0 and of rank 1: 3 steps");
}

TEST_CASE("parameters of another model's initializers, and memory of another executor, are told") {
  const Mesh mesh{data = 2, tensor = 1};
  const OwnedPlan plan = derive<Look, Step>(mesh), other = derive<Evaluation<Ones, Inputs>>(mesh);
  has(told(2,
           [&](Threads& world) {
             Parameters parameters(world.rank() == 1 ? *other : *plan, world.rank(), 1);
             Running(*plan, world, parameters).input(0, x);
           }),
      "initializers of the parameters of rank 0 and of rank 1: from line 3");
  const OwnedPlan remembering =
      derive<Evaluation<Remembering, Tensor<float, Shape<2, 4 / data>>, Tensor<int, Shape<>>>>(Mesh{data = 2});
  const auto run = [&](bool swapped) {
    return told(2, [&](Threads& world) {
      Parameters parameters(*remembering, world.rank(), 1);
      Running one(*remembering, world, parameters), two(*remembering, world, parameters);
      Running third(*remembering, world, parameters, {}, swapped && world.rank() == 1 ? &two : &one);
    });
  };
  CHECK(run(false) == "");
  has(run(true), "executor whose memory is shared of rank 0 and of rank 1: ");
}

TEST_CASE("what is set in all parameters leaves nothing of what was before") {
  const Mesh mesh{data = 2, tensor = 1};
  const OwnedPlan plan = derive<Step>(mesh);
  const auto run = [&](bool all) {
    return told(2, [&](Threads& world) {
      Parameters parameters(*plan, world.rank(), static_cast<std::uint64_t>(world.rank()));
      for (const std::string& path : Parameters::names(*plan))
        if (all || path != "up")
          parameters.set(*plan, world.rank(), path, std::vector<float>(path == "bias" ? 4 : 32, 1));
      Training_ trainer(*plan, world, parameters, {}, 1);
      trainer.executor().input(0, x);
      trainer.step();
    });
  };
  CHECK(run(true) == "");
  has(run(false), "seed of the parameters of rank 0 and of rank 1: 0 against 1");
}

TEST_CASE("a parameter that one rank sets otherwise, or alone, is found before the next step") {
  const Mesh mesh{data = 2, tensor = 2};
  const OwnedPlan plan = derive<Step>(mesh);
  const auto run = [&](auto set) {
    return told(4, [&](Threads& world) {
      Parameters parameters(*plan, world.rank(), 1);
      Training_ trainer(*plan, world, parameters, {}, 1);
      trainer.executor().input(0, x);
      trainer.step();
      set(parameters, world.rank());
      trainer.step();
    });
  };
  const auto sets = [&](auto& parameters, int rank, float value) {
    parameters.set(*plan, rank, "bias", all_of(value));
  };
  CHECK(run([&](auto& p, int rank) { sets(p, rank, 1); }) == "");
  CHECK(run([&](auto& p, int rank) {
          sets(p, rank, static_cast<float>(rank));
          sets(p, rank, 1);
        }) == "");
  const std::string alone = run([&](auto& p, int rank) {
    if (rank == 2) sets(p, rank, 1);
  });
  has(alone, "76 parallel::agree: the ranks are not alike at step 2 of a training (identity.cpp:");
  has(alone, "parameters that were set of ranks 0, 1, 3 and of rank 2: none against bias at identity.cpp:");
  CHECK(alone.find('\n') == std::string::npos);
  CHECK(run([&](auto& p, int rank) {
          sets(p, rank, 1);
          sets(p, rank, 1);
        }) == "");
  has(run([&](auto& p, int rank) { sets(p, rank, rank == 3 ? 2 : 1); }),
      "parameters that were set of ranks 0, 1, 2 and of rank 3: bias at identity.cpp:");
  // of one that ranks hold in parts each may give what it has, but all give something
  has(run([&](auto& p, int rank) {
        if (rank == 1) p.set(*plan, rank, "up", std::vector<float>(32, 1.0f));
      }),
      "parameters that were set of ranks 0, 2, 3 and of rank 1: none against up at identity.cpp:");
  CHECK(run([&](auto& p, int rank) {
          p.set(*plan, rank, "up", std::vector<float>(32, plan->mesh.coordinate(rank, &tensor) == 0 ? 1.0f : 2.0f));
        }) == "");
}

TEST_CASE("a stage sets what it alone holds") {
  using Stage = Accumulate<4, Training<InStages, AdamW, Tensor<float, Shape<4, 2, 4>>>>;
  const Mesh mesh{stage = 2};
  const OwnedPlan stages[] = {derive<Stage>(mesh, 0), derive<Stage>(mesh, 1)};
  CHECK(told(2, [&](Threads& world) {
          const Plan& plan = *stages[world.rank()];
          Parameters parameters(plan, world.rank(), 1);
          Training_ trainer(plan, world, parameters, {}, 1);
          trainer.executor().input(0, std::vector<float>(128, 0.5f));
          trainer.step();
          if (world.rank() == 0) parameters.set(plan, 0, "in", std::vector<float>(16, 0.5f));
          trainer.step();
        }) == "");
}

TEST_CASE("an executor keeps the parameters that it was made with") {
  const Mesh mesh{data = 2, tensor = 1};
  const OwnedPlan plan = derive<Step>(mesh);
  const auto run = [&](bool replaced) {
    double loss = 0;
    CHECK(told(2, [&](Threads& world) {
            Parameters parameters(*plan, world.rank(), 1);
            Training_ trainer(*plan, world, parameters, {}, 1);
            trainer.executor().input(0, x);
            if (replaced && world.rank() == 1) parameters = Parameters(*plan, world.rank(), 2);
            for (int step = 0; step < 20; ++step) {
              const std::vector<double> others(1000, 1e9);  // memory that was given back would be taken again
              const double now = trainer.step().loss;
              if (world.rank() == 0) loss = now;
            }
          }) == "");
    return loss;
  };
  CHECK(run(false) == run(true));
}

TEST_CASE("parameters that were moved away are named") {
  const OwnedPlan plan = derive<Look, Step>(Mesh{data = 2, tensor = 1});
  const std::string said = told(2, [&](Threads& world) {
    Parameters parameters(*plan, world.rank(), 1);
    const Parameters other = std::move(parameters);
    Running(*plan, world, parameters).input(0, x);
  });
  CHECK(said == "70 the parameters were moved away; use those that they were moved to");
}

TEST_CASE("ranks that made others before, with some of the ranks or in an earlier run, are alike") {
  const Mesh mesh{data = 2, tensor = 2};
  const OwnedPlan plan = derive<Step>(mesh), of_two = derive<Look, Step>(Mesh{data = 2, tensor = 1});
  for (int run = 0; run < 3; ++run)
    CHECK(told(4, [&](Threads& world) {
            Threads pair = world.split(world.rank() / 2, world.rank());
            Parameters few(*of_two, pair.rank(), 7), parameters(*plan, world.rank(), 1);
            for (int i = 0; i < 3 * (world.rank() / 2); ++i) {
              Running look(*of_two, pair, few);
              look.input(0, x);
              look.run();
            }
            Training_ first(*plan, world, parameters, {}, 1), second(*plan, world, parameters, {}, 1);
            for (Training_* trainer : {&first, &second}) {
              trainer->executor().input(0, x);
              trainer->step();
            }
            first.step();
          }) == "");
}

TEST_CASE("facts of another number or name are told, and long ones where they part") {
  const std::string other = told(3, [](Threads& world) {
    if (world.rank() == 1)
      agree(world, {fact("version", "3")});
    else
      agree(world, {fact("version", "3"), fact("text", "a")});
  });
  has(other,
      "beside what all compare ranks 0, 2 compare text, rank 1 nothing; give all ranks the same facts in the same "
      "order");
  const std::string none = told(2, [](Threads& world) {
    agree(world, world.rank() == 1 ? std::vector<Fact>{} : std::vector<Fact>{fact("version", "3")});
  });
  has(none, "beside what all compare rank 0 compares version, rank 1 nothing");
  const std::string cut = told(2, [](Threads& world) {
    std::string words(3000, 'a');
    words += world.rank() == 0 ? "left" : "right";
    agree(world, {fact("words", words + std::string(3000, 'z'))});
  });
  has(cut, "words of rank 0 and of rank 1: ..." + std::string(40, 'a') + "leftzzz");
  has(cut, "z... against ..." + std::string(40, 'a') + "rightzzz");
  CHECK(cut.size() < 500);
}

TEST_CASE("an exception that makes no sense is refused, and one that names nothing is said") {
  const OwnedPlan plan = derive<Step>(Mesh{data = 2, tensor = 1});
  const auto told_with = [&](const char* named, auto each) {
    ::setenv("PARALLEL_MAY_DIFFER", named, 1);
    const std::string said = told(2, [&](Threads& world) {
      Parameters parameters(*plan, world.rank(), each == 0 ? 1 : static_cast<std::uint64_t>(world.rank()));
      Training_ trainer(*plan, world, parameters, {}, 1, {}, {fact("mine", world.rank())});
    });
    ::unsetenv("PARALLEL_MAY_DIFFER");
    return said;
  };
  for (const char* name : {"plan", "learning_rate", "seed of the trainer", "weight_decay"})
    CHECK(told_with(("mine," + std::string(name)).c_str(), 0) ==
          "78 parallel::agree: PARALLEL_MAY_DIFFER names " + std::string(name) +
              ", but ranks that differ in it compute something else; name numerics, or facts of your own");
  CHECK(
      told_with("mine,numeric", 0) ==
      "78 parallel::agree: PARALLEL_MAY_DIFFER names numeric, which is none of what is compared; numerics may be meant");
  CHECK(told_with("mine", 0) == "");
  CHECK(told_with("mine,seed of the parameters", 1) == "");
  const std::string misspelt = told_with("mime", 0);
  has(misspelt, "mine of rank 0 and of rank 1: 0 against 1");
  has(misspelt, ", or, where that is meant, with PARALLEL_MAY_DIFFER='mine'");
  has(misspelt, "; PARALLEL_MAY_DIFFER names mime, which is none of what is compared here");
}

TEST_CASE("a line of the standard library is none of the user's") {
  const OwnedPlan plan = derive<Step>(Mesh{data = 2, tensor = 1});
  has(told(2,
           [&](Threads& world) {
             Parameters parameters(*plan, world.rank(), 1);
             const auto trainer = std::make_unique<Training_>(*plan, world, parameters, AdamW::Hyperparameters{},
                                                              static_cast<std::uint64_t>(world.rank()));
           }),
      "the ranks are not alike at the beginning of a training; seed of the trainer of rank 0 and of rank 1: 0 against "
      "1");
}

TEST_CASE("a barrier and a phase are compared by ranks that look at each other") {
  const auto one = [](auto right, auto wrong) {
    return told(3, [&](Threads& threads) {
      Checked<Threads> world(threads);
      world.rank() == 1 ? wrong(world) : right(world);
    });
  };
  const auto gate = [](auto& world) { world.barrier(); };
  const auto sums = [](auto& world) {
    float sum = 1;
    exchange(world, {Collective::all_reduce, &sum, &sum, 1, DType::f32, false, 0, "loss"});
  };
  const auto phase = [](const char* name) {
    return [name](auto& world) { long_phase(world, name, std::chrono::seconds(20), [] {}); };
  };
  CHECK(one(gate, gate) == "");
  CHECK(one(phase("loading"), phase("loading")) == "");
  has(one(sums, gate), "rank 1 at a barrier (identity.cpp:");
  has(one(sums, gate), "ranks 0, 2 are at collective 1 of its group, all_reduce of 1 f32 (loss) (identity.cpp:");
  has(one(gate, [](auto&) {}), "rank 1 at the end of the run");
  has(one(phase("loading"), phase("saving")), "rank 1 at a barrier in the phase 'saving'");
}
