// A model from the library, trained and then generated from with a key-value cache, on one rank and on four: sequence
// and tensor parallel by `/ tensor` in its sizes.
//
// The language is arithmetic: 3 5 7 9 ... modulo 16, with any start and any step. A Llama that has seen the first
// numbers of a sequence continues it. Keys and values of what has been generated lie like the heads; the logits are
// never gathered, the next number is drawn where they are.
//
//   meson compile -C build/demo examples/llama && build/demo/examples/llama [--record FILE]
#include <cstdio>
#include <string>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/llama.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr int batch = 32, context = 16, vocabulary = 16, prompts = 4, known = 3, steps = 800;

// the hidden state is split along the sequence; `context` alone: whole on every rank
constexpr models::LlamaSizes sizes{.context = context / tensor,
                                   .channels = 32,
                                   .heads = 4 / tensor,  // attention is split by heads
                                   .key_heads = 2 / tensor,
                                   .inner = 64 / tensor,
                                   .vocabulary = vocabulary / tensor,
                                   .layers = 2,
                                   .base = 100};
using Model = models::Llama<sizes>;
using Tokens = Tensor<int, Shape<batch / data, context>>;
using Step = Training<Model, AdamW, Tokens, Tokens>;

/// The model on `count` numbers of every prompt, of which the first stands at a position that is given, too: the number
/// that comes next.
template <int count>
using Next = Evaluation<Model, Tensor<int, Shape<prompts / data, count>>, Tensor<int, Shape<>>>;

// What a generated number costs: of a hidden state two all-reduces a layer and one for the embedding; of the logits two
// numbers a row.
constexpr auto& one_number = plan<Next<1>, Mesh{data = 2, tensor = 2}>;
// ... and four histograms for top_k and for top_p
static_assert(one_number.forward.collectives(all_reduce(tensor)) == 1 + 2 * 2 + 4 + 4 + 2);
static_assert(one_number.never(all_gather()));

int number(int progression, int position) {
  return (progression / vocabulary + position * (progression % vocabulary)) % vocabulary;
}

/// Trains on a mesh, then continues the prompts.
void train(const Mesh& mesh, const std::string& record) {
  const OwnedPlan training = derive<Step>(mesh), reading = derive<Next<known>, Step>(mesh),
                  generating = derive<Next<1>, Step>(mesh);
  std::vector<std::vector<int>> generated(prompts);
  const CosineSchedule schedule{1e-2, 1e-3, 50, steps};
  double first_loss = 0, last_loss = 0;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(training, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(training, world, parameters, {.beta2 = 0.99, .weight_decay = 0.01, .clip_norm = 1},
                                  1);
    Recording recording(record, training, world.rank());
    trainer.executor().record(recording);
    std::vector<int> tokens, targets;
    for (int step = 0; step < steps; ++step) {
      tokens.clear();
      targets.clear();
      for (int i = 0; i < batch; ++i)
        for (int p = 0; p < context; ++p) {
          const int progression = (step * batch + i) * 37 % (vocabulary * vocabulary);
          tokens.push_back(number(progression, p));
          targets.push_back(number(progression, p + 1));
        }
      trainer.executor().input(0, tokens);
      trainer.executor().input(1, targets);
      const StepResult result = trainer.step(schedule.at(step));
      if (world.rank() == 0) (step == 0 ? first_loss : last_loss) = result.loss;
    }
    recording.write();

    // The prompts at once, then number by number. Both programs share one memory of keys and values.
    Executor<Threads, Cpu> read(reading, world, parameters), generate(generating, world, parameters, {}, &read);
    std::vector<std::vector<int>> own(prompts);
    std::vector<int> inputs;
    for (int i = 0; i < prompts; ++i)
      for (int p = 0; p < known; ++p) {
        inputs.push_back(number(60 * i + 35, p));
        own[static_cast<std::size_t>(i)].push_back(inputs.back());
      }
    View drawn;
    const auto run = [&](Executor<Threads, Cpu>& executor, int position) {
      executor.input(0, inputs);
      executor.input(1, position);
      executor.scalar("temperature", 0);  // the most probable
      executor.run();
      drawn = executor.output(0);  // of this rank's prompts
    };
    run(read, 0);
    for (int position = known; position < context; ++position) {
      inputs.assign(prompts, 0);
      for (std::int64_t i = 0; i < drawn.size[0]; ++i) {
        const auto prompt = static_cast<std::size_t>(drawn.offset[0] + i);
        own[prompt].push_back(inputs[prompt] = drawn.as<int>()[i]);
      }
      run(generate, position);
    }
    world.barrier();
    if (world.rank() % mesh.extent(&tensor) == 0)  // ranks of one tensor group have the same prompts
      for (auto i = static_cast<std::size_t>(drawn.offset[0]);
           i < static_cast<std::size_t>(drawn.offset[0] + drawn.size[0]); ++i)
        generated[i] = own[i];
  });
  std::printf("%s: loss %.2f, after %d steps %.2f\n", text(mesh).c_str(), first_loss, steps, last_loss);
  for (const auto& numbers : generated) {
    for (std::size_t i = 0; i < numbers.size(); ++i) std::printf("%s%d", i == known ? " | " : " ", numbers[i]);
    std::printf("\n");
  }
}

int main(int argc, char** argv) {
  return guarded("llama", [&] {
    const std::string record = record_argument(argc, argv);
    train(Mesh{data = 1, tensor = 1}, "");
    train(Mesh{data = 2, tensor = 2}, record);
    return exit_code::done;
  });
}

// Expected output:
// data=1, tensor=1: loss 2.79, after 800 steps 0.2...
//  2 5 8 | 11 14 1 4 7 10 13 0 3 6 9 12 15
//  5 4 3 | 2 1 0 15 14 13 12 11 10 9 8 7 6
//  9 4 15 | 10 5 0 11 6 1 12 7 2 13 8 3 14
//  13 4 11 | 2 9 0 7 14 5 12 3 10 1 8 15 6
// data=2, tensor=2: loss 2.79, after 800 steps 0.2...
//  2 5 8 | 11 14 1 4 7 10 13 0 3 6 9 12 15
//  5 4 3 | 2 1 0 15 14 13 12 11 10 9 8 7 6
//  9 4 15 | 10 5 0 11 6 1 12 7 2 13 8 3 14
//  13 4 11 | 2 9 0 7 14 5 12 3 10 1 8 15 6
