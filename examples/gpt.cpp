// A GPT on text, trained by the plan that the compiler derives from its annotations: the largest of the examples.
//
//   tools/demo                                         four ranks as threads, data = 2, tensor = 2, on the licence texts of this machine
//   build/demo/examples/gpt --mesh data=4 --text FILE  another mesh, another text
//   mpirun -n 4 build/demo/examples/gpt --mpi          the same over MPI, with the same losses
//   build/gpt-gpu --gpu                                the same on a GPU, which the ranks share; docs/gpu.md says how it is compiled
//
// It prints the plan, trains, draws the loss, and samples from the trained model. Exit codes stand in docs/errors.md.
#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#if defined(WITH_CUDA)
#include <parallel/device/cuda.hpp>
#include <parallel/run/cuda/threads_on_gpu.hpp>
#endif
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/progress.hpp>
#include <parallel/run/sampling.hpp>
#include <parallel/run/text_data.hpp>
#include <parallel/run/trainer.hpp>

#include "command_line.hpp"

using namespace parallel;
using namespace parallel::axes;

// GPT-2's architecture, small: bytes as tokens, no biases, no dropout, the head tied to the embedding.
constexpr int vocabulary = 256, context = 64, channels = 128, heads = 4, layers = 4, batch = 12;

using Tokens = Tensor<int, Shape<batch / data, context>>;
template <Dim examples>
// This line says how the hidden state lies; `context / tensor` makes it sequence parallel.
using Hidden = Shape<examples, context, channels>;

struct Norm {
  Parameter<float, Shape<channels>> gain{ones};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain); }
};

struct Attention {
  Parameter<float, Shape<channels, 3, heads / tensor, channels / heads>> qkv{normal(0.02)};
  Parameter<float, Shape<heads / tensor, channels / heads, channels>> projection{scaled_normal(0.02, layers)};
  constexpr auto operator()(Distributed auto x) const {
    const auto projected = matmul(x, qkv);  // f32[batch/data, context, 3, heads/tensor, size]
    return matmul<2>(attention(take<2, 0>(projected), take<2, 1>(projected), take<2, 2>(projected)), projection);
  }
};

struct Mlp {
  Parameter<float, Shape<channels, 4 * channels / tensor>> up{normal(0.02)};                   // column parallel
  Parameter<float, Shape<4 * channels / tensor, channels>> down{scaled_normal(0.02, layers)};  // row parallel
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x, up)), down); }
};

struct Block {
  Norm norm1;
  Attention attention;
  Norm norm2;
  Mlp mlp;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(norm1(x));
    return y + mlp(norm2(y));
  }
};

struct Gpt {
  Parameter<float, Shape<vocabulary / tensor, channels>> token{normal(0.02)};  // vocabulary parallel
  Parameter<float, Shape<context, channels>> position{normal(0.02)};
  Layers<layers, Block> blocks;
  Norm norm;

  /// tokens[examples, context] -> logits[examples, context, vocabulary]
  constexpr auto logits(Distributed auto tokens) const {
    constexpr Dim examples = decltype(tokens)::type.layout.dims[0];  // split as the tokens are
    const auto hidden = to<Hidden<examples>>(embedding(tokens, token) + position);
    return matmul(norm(blocks(hidden)), transpose(token));
  }
  /// The mean cross entropy: what is trained.
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean(cross_entropy(logits(tokens), targets));
  }
  /// The same over tokens whose weight is 1, divided by how many there are on all ranks: what is validated, since
  /// examples do not fill every batch.
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets, Distributed auto weights) const {
    return sum(cross_entropy(logits(tokens), targets) * weights) / sum(weights);
  }
  /// The logits, whole on every rank: what is sampled from.
  constexpr auto operator()(Distributed auto tokens) const { return to<On<tensor, Invariant>>(logits(tokens)); }
};

using Step = Training<Gpt, AdamW, Tokens, Tokens>;
using Validate = Evaluation<Gpt, Tokens, Tokens, Tensor<float, Shape<batch / data, context>>>;
using Sample = Evaluation<Gpt, Tensor<int, Shape<1, context>>>;

// The plan is known before anything runs: Megatron's two all-reduces per layer and direction on tensor, every gradient
// once on data.
constexpr auto& expected = plan<Step, Mesh{data = 2, tensor = 2}>;
static_assert(expected.forward.collectives(tensor) == 1 + 2 * layers + 3);  // embedding, layers, cross entropy
static_assert(expected.backward.collectives(tensor) == 2 * layers + 1);     // layers, head
static_assert(expected.backward.sent(data) <= 2 << 20);

struct Options {
  Mesh mesh{data = 2, tensor = 2};
  std::string text, record, folder, samples_from = "This ";
  int steps = 1000, warmup = 100, sample = 400, threads = 1;
  double rate = 2e-3;
  std::uint64_t seed = 1;
};

template <Communicator World, Device Device>
void train(World& world, const Device& device, const Options& options, const TextData& text) {
  const OwnedPlan plan = derive<Step>(options.mesh), validation = derive<Validate, Step>(options.mesh),
                  sampling = derive<Sample, Step>(options.mesh);
  const bool speaks = world.rank() == 0;
  if (speaks) std::printf("%s\n", parallel::text(*plan).c_str());
  flush_standard_output();  // what cannot be written is not trained for

  ParametersIn<MemoryOf<Device>> parameters(plan, world.rank(), options.seed, device);
  const std::vector<Fact> alike{text.fact(), fact("--steps", options.steps), fact("--rate", options.rate),
                                fact("--warmup", options.warmup), fact("--sample", options.sample)};
  Trainer<World, Device> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1},
                                 options.seed, device, alike);
  Recording recording(options.record, *plan, world.rank());
  trainer.executor().record(recording);
  std::optional<Checkpoints<World>> checkpoints;
  if (!options.folder.empty()) checkpoints.emplace(world, options.folder);
  const auto from = static_cast<int>(checkpoints ? checkpoints->resume(trainer.executor()).step : 0);
  Executor<World, Device> evaluate(validation, world, parameters, device),
      generate(sampling, world, parameters, device);
  const CosineSchedule schedule{options.rate, options.rate / 10, std::min(options.warmup, options.steps / 2),
                                options.steps};
  std::vector<int> tokens, targets;
  tokens.reserve(batch * context);
  targets.reserve(batch * context);

  Progress progress(options.steps, batch * context, speaks);
  for (int step = from; step < options.steps; ++step) {
    text.batch(options.seed, static_cast<std::uint64_t>(step), batch, tokens, targets);
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    const StepResult result = trainer.step(schedule.at(step));
    progress.step(step, result.loss, result.gradient_norm);
    if (checkpoints && (step + 1) % 100 == 0) checkpoints->save(trainer.executor(), step + 1);
  }
  progress.finish();
  recording.write();

  double loss = 0;
  std::vector<float> weights;
  const int windows = text.validation_windows();
  for (int window = 0; window < windows; window += batch) {
    tokens.clear();
    targets.clear();
    weights.clear();
    for (int i = 0; i < batch; ++i) {
      const bool real = window + i < windows;
      text.validation_window(real ? window + i : 0, tokens, targets);
      weights.insert(weights.end(), context, real ? 1.0F : 0.0F);
    }
    evaluate.input(0, tokens);
    evaluate.input(1, targets);
    evaluate.input(2, weights);
    evaluate.run();
    loss += evaluate.output_scalar(0) * std::min(batch, windows - window) / windows;
  }
  if (speaks) {
    std::printf("\n%s\n", progress.curve().c_str());
    std::printf("validation loss %.4f nats per byte, over %d windows\n", loss, windows);
    std::printf("bigram entropy  %.4f nats per byte: what a table of byte pairs would reach\n\n",
                text.bigram_entropy());
  }

  std::string sampled = options.samples_from;
  std::vector<std::byte> room;
  for (int n = 0; n < options.sample; ++n) {
    std::vector<int> window(context, ' ');
    const int known = std::min<int>(context, static_cast<int>(sampled.size()));
    for (int i = 0; i < known; ++i)
      window[static_cast<std::size_t>(i)] =
          static_cast<unsigned char>(sampled[sampled.size() - static_cast<std::size_t>(known - i)]);
    generate.input(0, window);
    generate.run();
    const float* logits = generate.on_host(generate.output(0), room).template as<float>() + (known - 1) * vocabulary;
    const int token = sample_token(logits, vocabulary, 0.8, options.seed, static_cast<std::uint64_t>(n));
    if (token < 0) throw Failure("nothing can be drawn: the model gives what is no number", exit_code::failed);
    sampled += static_cast<char>(token);
  }
  if (speaks) std::printf("sampled:\n%s\n", sampled.c_str());
}

int main(int argc, char** argv) {
  return guarded("gpt", [&] {
    Options options;
    std::string mesh = "data=2,tensor=2";
    bool mpi = false, gpu = false;
    CommandLine arguments("Trains a small GPT on text by the plan that its annotations give.");
    arguments.text("--mesh", mesh, "ranks per axis");
    arguments.text("--text", options.text, "file to train on; by default the licence texts of this machine");
    arguments.number("--steps", options.steps, "training steps", 1, 1000000);
    arguments.number("--rate", options.rate, "peak learning rate; it falls to a tenth of it by a cosine", 0, 1e300);
    arguments.number("--warmup", options.warmup, "steps until the peak", 0, 1000000);
    arguments.number("--seed", options.seed, "of parameters, batches and samples", std::uint64_t{1} << 53);
    arguments.number("--sample", options.sample, "bytes to sample at the end", 0, 100000);
    arguments.text("--folder", options.folder, "of checkpoints, one each 100 steps; by default none are kept");
    arguments.text("--record", options.record,
                   "writes FILE.RANK: what happened in the first steps, for tools/plan --run");
    arguments.number("--threads", options.threads, "that compute a rank's operations together", 1, 1024);
    arguments.flag("--mpi", mpi, "ranks are the processes of mpirun instead of threads");
    arguments.flag("--gpu", gpu, "on the first GPU, which the ranks share");
    if (!arguments.read(argc, argv)) return exit_code::done;
    options.mesh = mesh_argument(mesh, {&data, &tensor});
    derive<Step>(options.mesh);  // a mesh that does not fit is refused before any rank starts
    const TextData text(options.text.empty() ? licence_texts() : read_file(options.text),
                        options.text.empty() ? "the licence texts" : options.text, context);
    if (gpu) {
#if defined(WITH_CUDA)
      run_threads(options.mesh.ranks(), [&](Threads& world) { train(world, Cuda(0), options, text); });
      return exit_code::done;
#else
      throw Failure("this build has no CUDA; compile it with nvcc as docs/gpu.md says, or leave --gpu away", exit_code::unavailable);
#endif
    }
    if (!mpi) {
      run_threads(options.mesh.ranks(),
                  [&](Threads& world) { train(world, Cpu{.threads = options.threads}, options, text); });
      return exit_code::done;
    }
#if defined(WITH_MPI)
    run_mpi([&](Mpi& world) { train(world, Cpu{.threads = options.threads}, options, text); },
            {.ranks = options.mesh.ranks()});
    return exit_code::done;
#else
    throw Failure("this build has no MPI; install libboost-mpi-dev and configure again, or leave --mpi away", exit_code::unavailable);
#endif
  });
}

// Expected output:
// plan for data=2, tensor=2: 4 ranks
// ...
// per step and rank      axis         collectives  calls  message    sent
// forward                data         1            1      4 B        4 B
// forward                tensor       12           12     1.7 MiB    1.7 MiB
// backward               data         ...
// backward               tensor       9            9      1.7 MiB    1.7 MiB
// optimizer              tensor       1            1      8 B        8 B
// ...
// training loss
// ...
// validation loss ... nats per byte, over ... windows
// bigram entropy  ... nats per byte: what a table of byte pairs would reach
//
// sampled:
// ...
