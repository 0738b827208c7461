// Ranks that do not begin alike are told so before the first step, each on every rank: what differs, and which ranks
// have what.
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/run/executor.hpp>

#include "models.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

template <bool smooth>
struct Model {
  Parameter<float, Shape<4, 8 / tensor>> up{normal(0.3)};
  Parameter<float, Shape<8 / tensor, 4>> down{normal(smooth ? 0.3 : 0.3)};
  constexpr auto operator()(Distributed auto x) const {
    if constexpr (smooth)
      return mean(square(matmul(gelu(matmul(x, up)), down)));
    else
      return mean(square(matmul(relu(matmul(x, up)), down)));
  }
};
template <bool smooth, int batch = 8>
using Step = Training<Model<smooth>, AdamW, Tensor<float, Shape<batch / data, 4>>>;

struct Fetched {
  constexpr auto operator()(Distributed auto x) const { return to<On<tensor, Broadcast>>(x); }
};

struct Told {
  std::vector<std::string> ranks;  ///< what each was told; "" where it ran
  int exit_code = 0;
};

/// What one rank does: its plan, seed and learning rate.
struct Rank {
  OwnedPlan plan;
  std::uint64_t seed = 1;
  double rate = 0.1;
};

Told started(int ranks, const std::vector<Rank>& all) {
  Told told{std::vector<std::string>(static_cast<std::size_t>(ranks)), 0};
  try {
    run_threads(ranks, [&](Threads& world) {
      const auto me = static_cast<std::size_t>(world.rank());
      const Rank& mine = all[me % all.size()];
      try {
        Parameters parameters(*mine.plan, world.rank(), mine.seed);
        Executor<Threads, Cpu> executor(*mine.plan, world, parameters, {}, nullptr, {fact("learning_rate", mine.rate)});
        const std::vector<float> x(32, 0.5f);
        executor.input(0, x);
        executor.scalar("learning_rate", mine.rate);
        executor.run();
      } catch (const Failure& error) {
        told.ranks[me] = error.what();
        throw;
      }
    });
  } catch (const Failure& error) {
    told.exit_code = error.exit_code;
  }
  return told;
}
/// All ranks are told, by the same words.
void all_are_told(const Told& told, const std::vector<std::string>& words) {
  CHECK(told.exit_code == 76);
  for (const std::string& sentence : told.ranks) {
    INFO(sentence);
    CHECK(sentence == told.ranks[0]);
    for (const std::string& part : words) CHECK(sentence.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("ranks that begin alike run") {
  const Told told = started(4, {{derive<Step<true>>(Mesh{data = 2, tensor = 2})}});
  CHECK(told.exit_code == 0);
  for (const std::string& sentence : told.ranks) CHECK(sentence == "");
}

TEST_CASE("another program, mesh, order of axes or batch on a rank") {
  const OwnedPlan plan = derive<Step<true>>(Mesh{data = 2, tensor = 2});
  all_are_told(started(4, {{plan}, {plan}, {plan}, {derive<Step<false>>(Mesh{data = 2, tensor = 2})}}),
               {"plan of ranks 0, 1, 2 and of rank 3", "- forward gelu", "+ forward relu"});
  all_are_told(started(4, {{plan}, {derive<Step<true>>(Mesh{tensor = 2, data = 2})}}),
               {"plan of ranks 0, 2 and of ranks 1, 3", "- mesh data 2 tensor 2", "+ mesh tensor 2 data 2"});
  all_are_told(started(4, {{plan}, {derive<Step<true>>(Mesh{data = 4, tensor = 1})}}),
               {"- mesh data 2 tensor 2", "+ mesh data 4 tensor 1"});
  all_are_told(started(4, {{plan}, {derive<Step<true, 16>>(Mesh{data = 2, tensor = 2})}}), {"16 data"});
}

TEST_CASE("other first parameters or another number of the run on a rank") {
  const OwnedPlan plan = derive<Step<true>>(Mesh{data = 2});
  all_are_told(started(2, {{plan, 1}, {plan, 2}}), {"not alike at the beginning of a training (agreement.cpp:",
                                                    "seed of the parameters of rank 0 and of rank 1: 1 against 2"});
  all_are_told(started(2, {{plan, 1, 0.1}, {plan, 1, 0.2}}),
               {"learning_rate of rank 0 and of rank 1: 0.1", " against 0.2"});
}

TEST_CASE("an extra or a missing step, and another number of a step, are found in the step") {
  const OwnedPlan plan = derive<Step<true>>(Mesh{data = 2, tensor = 2}),
                  looking = derive<Evaluation<Model<true>, Tensor<float, Shape<8 / data, 4>>>, Step<true>>(
                      Mesh{data = 2, tensor = 2});
  struct Turn {
    int steps = 3;
    bool elsewhere = false;
    double last_rate = 0.1;
    bool evaluates = false, begins_another = false;
  };
  // What the ranks are told where the last of them takes another turn. A line is of this file.
  const auto told = [&](Turn of_last, Turn of_others = {}) {
    Told all{std::vector<std::string>(4), 0};
    std::atomic<int> steps{0};
    try {
      run_threads(4, [&](Threads& world) {
        const auto me = static_cast<std::size_t>(world.rank());
        const Turn turn = me == 3 ? of_last : of_others;
        try {
          Parameters parameters(*plan, world.rank(), 1);
          Executor<Threads, Cpu> train(*plan, world, parameters), look(*looking, world, parameters);
          const std::vector<float> x(32, 0.5f);
          train.input(0, x);
          look.input(0, x);
          for (int step = 0; step < turn.steps; ++step) {
            train.scalar("learning_rate", step + 1 < turn.steps ? 0.1 : turn.last_rate);
            if (turn.elsewhere && step == 2)
              train.run();
            else
              train.run();
            ++steps;
          }
          if (turn.evaluates) look.run();
          if (turn.begins_another) Executor<Threads, Cpu>(*looking, world, parameters).input(0, x);
          agreeing::end(world);
        } catch (const Failure& error) {
          all.ranks[me] = error.what();
          throw;
        }
      });
    } catch (const Failure& error) {
      all.exit_code = error.exit_code;
    }
    CHECK(steps <= 4 * 3);  // none ran that not all ranks began
    return all;
  };
  CHECK(told({}).exit_code == 0);
  const std::string end = "at the end of the run";
  all_are_told(told({.steps = 4}),
               {"not at one place: ranks 0, 1, 2 are " + end + ", rank 3 at step 4 of a training (agreement.cpp:"});
  all_are_told(told({.steps = 2}), {"ranks 0, 1, 2 are at step 3 of a training (agreement.cpp:", "rank 3 " + end});
  all_are_told(told({.evaluates = true}), {"rank 3 at step 1 of an evaluation (agreement.cpp:"});
  all_are_told(told({.steps = 4}, {.evaluates = true}),
               {"ranks 0, 1, 2 are at step 1 of an evaluation", "rank 3 at step 4 of a training"});
  all_are_told(told({.steps = 2, .evaluates = true}),
               {"ranks 0, 1, 2 are at step 3 of a training", "rank 3 at step 1 of an evaluation"});
  all_are_told(told({.begins_another = true}), {"rank 3 at the beginning of an evaluation (agreement.cpp:"});
  all_are_told(told({.elsewhere = true, .last_rate = 0.2}),
               {"not alike at step 3 of a training (ranks 0, 1, 2 agreement.cpp:", "; rank 3 agreement.cpp:",
                "; learning_rate"});
  all_are_told(told({.last_rate = 0.2}), {"not alike at step 3 of a training (agreement.cpp:",
                                          "learning_rate of ranks 0, 1, 2 and of rank 3: 0.1 against 0.2"});
}

TEST_CASE("what a user names, and what may differ by name") {
  const auto told = [](const char* allowed) {
    if (allowed != nullptr)
      ::setenv("PARALLEL_MAY_DIFFER", allowed, 1);
    else
      ::unsetenv("PARALLEL_MAY_DIFFER");
    std::string sentence;
    try {
      run_threads(3, [](Threads& world) {
        std::vector<int> tokens(100'000, 7);
        if (world.rank() == 1) tokens.back() = 8;
        agree(world, {fact("version", "3"), fact_of_data("text", std::span<const int>(tokens))});
      });
    } catch (const Mismatch& error) {
      sentence = error.what();
    }
    ::unsetenv("PARALLEL_MAY_DIFFER");
    return sentence;
  };
  CHECK(told(nullptr).find("text of ranks 0, 2 and of rank 1: 100000 elements of 4 bytes, hash ") != std::string::npos);
  CHECK(told("numerics").find("text of ranks") != std::string::npos);
  CHECK(told("numerics,text") == "");
}

TEST_CASE("of large text a sample is looked at, which has its size, its beginning and its end") {
  std::vector<char> text(5'000'000, 'a');
  const auto hash = [&] { return fact_of_data("text", std::span<const char>(text)).hash; };
  const std::uint64_t before = hash();
  text.front() = 'b';
  CHECK(hash() != before);
  text.front() = 'a';
  text.back() = 'b';
  CHECK(hash() != before);
  text.back() = 'a';
  CHECK(hash() == before);
  text.pop_back();
  CHECK(hash() != before);
}

TEST_CASE("inputs are compared where several ranks take the same part of one, and only there") {
  const auto compared = [](const Plan& plan) {
    const Comparison& inputs = plan.agreement.inputs;
    return std::vector<double>{static_cast<double>(inputs.calls()), static_cast<double>(inputs.messages()),
                               inputs.sent()};
  };
  const std::vector<double> nothing{0, 0, 0};
  CHECK(compared(derive<Step<true>>(Mesh{})) == nothing);
  CHECK(compared(derive<Step<true>>(Mesh{data = 4})) == nothing);
  CHECK(compared(derive<Step<true>>(Mesh{data = 4, tensor = 1})) == nothing);
  CHECK(compared(derive<Step<true>>(Mesh{tensor = 2})) == std::vector<double>{1, 32, 16});
  CHECK(compared(derive<Step<true>>(Mesh{data = 2, tensor = 2})) == std::vector<double>{1, 64, 48});
  // what a single rank has
  using AtOne = Tensor<float, Shape<8, 4>, On<tensor, At<0>>>;
  CHECK(compared(derive<Evaluation<Fetched, AtOne>>(Mesh{tensor = 2})) == nothing);
  for (const std::int64_t step : {1, 2, 4, 8, 1024}) CHECK(Agreement::compares_inputs(step));
  for (const std::int64_t step : {3, 5, 6, 7, 9, 1023}) CHECK(!Agreement::compares_inputs(step));
}
