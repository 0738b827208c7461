// A sequence of 65,536 tokens that one rank has no room for trains on two.
#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/model/llama.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {
constexpr int length = 65'536, classes = 64;
using Model = models::Llama<models::LlamaSizes{.context = length / sequence,
                                               .attention = Context::ring,
                                               .channels = 32,
                                               .heads = 1,
                                               .key_heads = 1,
                                               .inner = 64,
                                               .vocabulary = classes,
                                               .layers = 1}>;
using Tokens = Tensor<int, Shape<1, length / sequence>>;
constexpr std::int64_t budget = 160 << 20;
using Step = Within<Training<Model, AdamW, Tokens, Tokens>, PeakMemory<budget>>;
}  // namespace

TEST_CASE("what one rank's budget refuses trains on two") {
  try {
    derive<Step>(Mesh{sequence = 1});
    CHECK(false);
  } catch (const MeshRefused& refused) {
    CHECK(refused.reason == Reason::over_memory);
  }
  constexpr auto& shared = plan<Step, Mesh{sequence = 2}>;
  CHECK(shared.peak_memory() <= budget);
  std::vector<int> tokens(length + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * i / 7 % classes);
  run_threads(2, [&](Threads& world) {
    Parameters parameters(shared, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(shared, world, parameters, AdamW::Hyperparameters{}, 1);
    trainer.executor().input(0, std::span(tokens).first(length));
    trainer.executor().input(1, std::span(tokens).last(length));
    const double before = trainer.step(0.01).loss, behind = trainer.step(0.01).loss;
    CHECK(before == doctest::Approx(std::log(classes)).epsilon(0.05));
    CHECK(behind < before - 0.01);
  });
}
