// A GPT of 10.8M parameters trained on bytes in f32 and in bf16, by turns: time of a step, and both loss curves. With
// products of oneDNN (gpt_step's variants) those of bf16 are the processor's own, where it has them.
//
//   bf16_step TEXT [--steps 40]
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "measure.hpp"

namespace {

using namespace parallel;
using namespace parallel::axes;

constexpr int batch = 8, context = 256;
constexpr models::Gpt2Sizes sizes{.context = context,
                                  .channels = 384,
                                  .heads = 6,
                                  .inner = 1536,
                                  .vocabulary = 256,
                                  .classes = 256,
                                  .layers = 6,
                                  .dropped = 0};
using Tokens = Tensor<int, Shape<batch, context>>;
template <class T>
using Step = Training<models::Gpt2<sizes, T>, AdamW, Tokens, Tokens>;

/// Windows of a text, drawn by counter.
struct Windows {
  std::string text;
  std::array<std::vector<int>, 2> operator()(int step) const {
    std::array<std::vector<int>, 2> all;
    for (int row = 0; row < batch; ++row) {
      const double where =
          internals::random_uniform(1, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(row));
      const auto begin = static_cast<std::size_t>(where * static_cast<double>(text.size() - context - 1));
      for (std::size_t i = 0; i < context; ++i)
        for (std::size_t behind : {0, 1}) all[behind].push_back(static_cast<unsigned char>(text[begin + i + behind]));
    }
    return all;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc == 4 && std::strcmp(argv[2], "--steps") == 0 ? std::atoi(argv[3]) : argc == 2 ? 40 : 0;
  if (steps < 1) return std::fprintf(stderr, "bf16_step TEXT [--steps 40]\n"), 2;
  std::ifstream file(argv[1], std::ios::binary);
  const Windows windows{{std::istreambuf_iterator<char>(file), {}}};
  if (windows.text.size() < 10 * context) return std::fprintf(stderr, "bf16_step: %s is too short\n", argv[1]), 66;
  const auto single = derive<Step<float>>(Mesh{}), half = derive<Step<bfloat16>>(Mesh{});
  std::vector<double> times[2], losses[2];
  run_threads(1, [&](Threads& world) {
    Parameters of_single(*single, 0, 1), of_half(*half, 0, 1);
    Trainer<Threads, Cpu> in_single(*single, world, of_single, {.clip_norm = 1}, 1),
        in_half(*half, world, of_half, {.clip_norm = 1}, 1);
    for (int step = 0; step < steps; ++step) {
      const auto [tokens, targets] = windows(step);
      for (const bool in_bf16 : {false, true}) {
        Trainer<Threads, Cpu>& trainer = in_bf16 ? in_half : in_single;
        const double time = bench::seconds([&] {
          trainer.executor().input(0, tokens);
          trainer.executor().input(1, targets);
          losses[in_bf16].push_back(trainer.step(std::min(1.0, (step + 1) / 20.0) * 1e-3).loss);
        });
        if (step > 0) times[in_bf16].push_back(time * 1e3);
      }
    }
  });
  const std::string numerics = internals::numerics(), products = numerics.substr(numerics.find("products of "));
  const std::string name = products.substr(0, products.find(' ', 12)) + ": ";  // without the library's version
  for (const bool in_bf16 : {false, true})
    bench::row("bf16", name + "a step in " + (in_bf16 ? "bf16" : "f32"), bench::spread(times[in_bf16]), "ms");
  bench::row("bf16", name + "bf16 / f32", bench::ratio(times[1], times[0]), "of the time");
  for (int step = 1; step <= steps; step = step < 10 ? 10 : 2 * step)
    for (const bool in_bf16 : {false, true})
      bench::row("bf16", name + "loss of step " + std::to_string(step) + " in " + (in_bf16 ? "bf16" : "f32"),
                 losses[in_bf16][static_cast<std::size_t>(step - 1)], "nats");
}
