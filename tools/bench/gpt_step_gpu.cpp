// Training steps of GPT-2 (124M) in bf16 on one GPU: tokens per second, operations of a token, the GPU's own rates, and
// kernels against their two floors.
//
//   gpt_step_gpu [--steps N] [--kernels]
//
// Prints lines `name value`, which tools/gpu reads. The operations of a token are 6 N and 12 layers * channels *
// context for attention (PaLM, Chowdhery et al., 2022); `flops_per_token_halved` has half of the latter, what a causal
// mask leaves, as llm.c counts. A step is one CUDA graph. --kernels also prints, for each operation, its time with the
// host waiting behind it, and its floors: bytes over the bandwidth of a copy, operations over the rate of a large
// product, both measured here.
#include <cstring>
#include <limits>
#include <map>

#include <parallel/communicator/threads.hpp>
#include <parallel/cost/price.hpp>
#include <parallel/device/cuda.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/cuda/threads_on_gpu.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr int batch = 32, context = 1024;
constexpr models::Gpt2Sizes sizes{.context = context, .dropped = 0};
using Model = models::Gpt2<sizes, bfloat16>;
using Tokens = Tensor<int, Shape<batch / data, context>>;
using Step = Training<Model, AdamW, Tokens, Tokens>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Seconds of one of so many calls of f, which asks the GPU for work.
template <class F>
double seconds_of(const Cuda& device, int calls, F f) {
  f();
  device.finish();
  const double begin = now();
  for (int i = 0; i < calls; ++i) f();
  device.finish();
  return (now() - begin) / calls;
}

/// Random bf16 in every element: zeros draw less power, and a GPU multiplies them faster than a program's numbers.
void randomize(GpuMemory& matrix) {
  matrix.change(0, matrix.bytes(), [&](std::byte* host) {
    for (std::int64_t i = 0; i < matrix.bytes() / 2; ++i) {
      const bfloat16 number(static_cast<float>(random_uniform(1, 2, static_cast<std::uint64_t>(i)) - 0.5));
      std::memcpy(host + 2 * i, &number, 2);
    }
  });
}

/// What this GPU does at best: a large product in bf16, a copy.
Machine measured(const Cuda& device) {
  Machine m;
  m.name = "measured";
  constexpr std::int64_t n = 8192, bytes = std::int64_t{1} << 30;
  GpuMemory x = device.memory(2 * n * n), w = device.memory(2 * n * n), y = device.memory(2 * n * n);
  randomize(x);
  randomize(w);
  cuda::PreparedProduct product({.m = n, .n = n, .k = n, .dtype = DType::bf16, .result = DType::bf16}, device.gpu());
  Rates r;
  const double rate = 2.0 * n * n * n / seconds_of(device, 200, [&] { product.run(x.data(), w.data(), y.data()); });
  r.products[static_cast<int>(DType::bf16)] = r.attention[static_cast<int>(DType::bf16)] = rate;
  r.products[static_cast<int>(DType::f32)] = rate;
  const GpuMemory from = device.memory(bytes), to = device.memory(bytes);
  r.memory_bandwidth = 2.0 * bytes / seconds_of(device, 20, [&] {
                         cuda::check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                                                     cudaMemcpyDeviceToDevice, device.gpu().stream()),
                                     "a copy");
                       });
  m.rates.push_back(r);
  m.launch = 0;
  return m;
}

/// Per operation: calls, seconds and floors of a step.
struct Cost {
  int calls = 0;
  double seconds = 0, memory = 0, arithmetic = 0;
};
void print_kernels(const Plan& plan, const Recording& recording, const Machine& machine, int step) {
  Machine endless = machine;  // of which the time of arithmetic is left
  endless.rates[0].memory_bandwidth = std::numeric_limits<double>::infinity();
  std::map<std::string, Cost> costs;
  std::map<int, const Event*> events;  // by node
  for (const Event& e : plan.events)
    if (e.kind == EventKind::compute) events[e.node] = &e;
  for (const Happened& h : recording.happened()) {
    if (h.step != step || h.kind != EventKind::compute) continue;
    const Event& e = *events.at(h.node);
    Cost& cost = costs[operations(plan.graph, e)];
    ++cost.calls;
    cost.seconds += h.end - h.begin;
    cost.memory += streaming_seconds(bytes_moved(plan, e, machine), machine.rates[0]);
    cost.arithmetic += compute_seconds(plan, e, endless);
  }
  for (const auto& [name, cost] : costs)
    std::printf("kernel %d %.9f %.9f %.9f %s\n", cost.calls, cost.seconds, cost.memory, cost.arithmetic, name.c_str());
}

int run(int steps, bool kernels) {
  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  const Cuda device(0);
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "the GPU's properties");
  std::printf("gpu %s\n", properties.name);
  const Machine machine = measured(device);
  std::printf("product_rate %.4g\nmemory_bandwidth %.4g\n", machine.rates[0].products[static_cast<int>(DType::bf16)],
              machine.rates[0].memory_bandwidth);

  run_threads(1, [&](Threads& world) {
    ParametersIn<GpuMemory> parameters(*plan, 0, 1, device);
    Trainer<Threads, Cuda> trainer(*plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1,
                                   device);
    std::vector<int> tokens(batch * context), targets(batch * context);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int>(random_uniform(1, 0, i) * sizes.classes);
      targets[i] = static_cast<int>(random_uniform(1, 1, i) * sizes.classes);
    }
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    trainer.step(1e-4);
    if (kernels) {
      Recording recording(*plan, 0, 3);
      trainer.executor().record(recording);
      for (int i = 0; i < 3; ++i) trainer.step(1e-4);
      print_kernels(*plan, recording, machine, 3);
    }
    trainer.executor().capture();
    for (int i = 0; i < 5; ++i) trainer.step(1e-4);
    StepResult result;
    const double begin = now();
    for (int i = 0; i < steps; ++i) result = trainer.step(1e-4);
    const double seconds = (now() - begin) / steps;

    double trained = 0;
    for (const Member& m : plan->graph.members)
      if (m.role == Role::parameter) trained += static_cast<double>(m.type.layout.elements());
    auto memory = static_cast<double>(plan->memory.arena);
    for (const std::int64_t block : plan->memory.blocks) memory += static_cast<double>(block);
    const double attention = 12.0 * static_cast<double>(sizes.layers.size * sizes.channels) * context;
    std::printf("memory %.4g\nloss %.4f\nstep_seconds %.6f\ntokens_per_second %.0f\n", memory, result.loss, seconds,
                batch * context / seconds);
    std::printf("parameters %.0f\nflops_per_token %.0f\nflops_per_token_halved %.0f\n", trained,
                6 * trained + attention, 6 * trained + attention / 2);
  });
  return exit_code::done;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("gpt_step_gpu", [&] {
    int steps = 20;
    bool kernels = false;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--kernels") == 0)
        kernels = true;
      else if (std::strcmp(argv[i], "--steps") == 0 && i + 1 < argc && (steps = std::atoi(argv[++i])) > 0)
        continue;
      else
        return std::fprintf(stderr,
                            "gpt_step_gpu: error: unknown argument '%s'; say gpt_step_gpu [--steps N] [--kernels]\n",
                            argv[i]),
               exit_code::usage;
    }
    return run(steps, kernels);
  });
}
