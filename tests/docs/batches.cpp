// The program of docs/files.md that trains on a file of tokens.
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/data/prefetch.hpp>
#include <parallel/data/rows.hpp>
#include <parallel/data/sampler.hpp>
#include <parallel/data/windows.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr int batch = 8, context = 16, vocabulary = 12;

struct Bigrams {
  Parameter<float, Shape<vocabulary, vocabulary>> next{zeros};
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean_cross_entropy<vocabulary, TokenWindows::ignored>(embedding(tokens, next), targets);
  }
};
using Tokens = Tensor<int, Shape<batch / data, context>>;
using Step = Training<Bigrams, AdamW, Tokens, Tokens>;

struct Batch {
  std::vector<int> tokens = std::vector<int>(batch * context), targets = std::vector<int>(batch * context);
};

/// The loss of the last step.
double train(Threads& world, const Mesh& mesh, const std::string& file, std::int64_t first_step, std::int64_t steps) {
  const OwnedPlan plan = derive<Step>(mesh);
  Parameters parameters(plan, world.rank(), 1);
  Trainer<Threads, Cpu> trainer(plan, world, parameters, {.weight_decay = 0}, 1);
  const TokenWindows windows(TokenFile(file), context, {.end_of_document = 11});
  const Sampler sampler(windows.size(), batch, {.seed = 1, .last = LastBatch::dropped});
  const std::vector<std::int64_t> rows = rows_of(*plan, 0, world.rank());
  Prefetch<Batch> batches(
      [&](std::int64_t step) {
        Batch made;
        const std::vector<std::int64_t> samples = sampler.samples(step);
        for (const std::int64_t row : rows)
          windows.copy(samples[static_cast<std::size_t>(row)], row, made.tokens, made.targets);
        return made;
      },
      first_step);
  double loss = 0;
  for (std::int64_t step = first_step; step < steps; ++step) {
    const Batch now = batches.next();
    trainer.executor().input(0, now.tokens);
    trainer.executor().input(1, now.targets);
    loss = trainer.step(1e-2).loss;
  }
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("batches", [&] {
    if (argc != 2) throw Failure("name a folder to write in", exit_code::usage);
    const std::string file = argv[1] + std::string("/counted.bin");
    std::vector<std::uint16_t> tokens(4000);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i % vocabulary);
    write_tokens(file, std::span(std::as_const(tokens)));
    double losses[3] = {};
    for (const int ranks : {1, 2, 4})
      run_threads(ranks, [&](Threads& world) {
        const double loss = train(world, Mesh{data = ranks}, file, 0, 200);
        if (world.rank() == 0) losses[ranks / 2] = loss;
      });
    std::printf("the loss is %.3f\n", losses[0]);
    const bool alike = std::abs(losses[1] - losses[0]) < 1e-5 && std::abs(losses[2] - losses[0]) < 1e-5;
    return alike && losses[0] < 0.5 ? exit_code::done : exit_code::failed;
  });
}
