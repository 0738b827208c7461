// A two-layer perceptron, tensor parallel: the compiler derives the two reductions that Megatron-LM writes by hand.
//
// `up` is split by columns and `down` by rows, so the hidden layer is split and nothing moves between them. Behind `down` each rank holds a
// term of the result: the subtraction of y cannot take a pending sum, so it is completed there (Megatron's g). The gradient of x would be
// reduced where x becomes Broadcast (Megatron's f), but nobody asks for it. With `data`, the batch is split and the parameters' gradients are
// reduced once per step. Nothing of this is written below but the placements.
//
//   meson compile -C build/demo examples/mlp && build/demo/examples/mlp
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include <cstdio>
#include <vector>

using namespace parallel;
using namespace parallel::axes;

struct Mlp {                                                              // Megatron-LM, Figure 3a
  Parameter<float, Shape<16, 64 / tensor>> up{normal(0.3)};               // column parallel
  Parameter<float, Shape<64 / tensor>> up_bias{zeros};
  Parameter<float, Shape<64 / tensor, 16>> down{normal(0.1)};             // row parallel
  Parameter<float, Shape<16>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias; }
};

struct Regression {
  Mlp mlp;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(mlp(x) - y)); }
};

using Batch = Tensor<float, Shape<32 / data, 16>>;
using Step = Training<Regression, AdamW, Batch, Batch>;

constexpr auto& mlp_plan = plan<Step, Mesh{data = 2, tensor = 2}>;
static_assert(mlp_plan.forward.collectives(tensor) == 1);   // g: the pending sum of `down` meets y
static_assert(mlp_plan.backward.collectives(tensor) == 0);  // x needs no gradient, so f costs nothing
static_assert(mlp_plan.forward.elements(tensor) == 16 * 16);
static_assert(mlp_plan.backward.collectives(data) == 4);    // four parameters' gradients, once per step
static_assert(mlp_plan.peak_memory() <= 64 << 10);

int main() {
  std::printf("%s\n", text(mlp_plan).c_str());
  run_threads(4, [](Threads& world) {
    Parameters parameters(mlp_plan, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(mlp_plan, world, parameters, {.weight_decay = 0}, 1);
    std::vector<float> x(32 * 16), y(32 * 16);
    for (int step = 0; step <= 200; ++step) {
      for (std::size_t i = 0; i < x.size(); ++i) {  // learn to shift a row by one place and square it
        x[i] = static_cast<float>(2 * random_uniform(7, static_cast<std::uint64_t>(step), i) - 1);
        y[i / 16 * 16 + (i + 1) % 16] = x[i] * x[i];
      }
      trainer.executor().input(0, x.data());
      trainer.executor().input(1, y.data());
      const StepResult result = trainer.step(1e-2);
      if (world.rank() == 0 && step % 50 == 0) std::printf("step %3d  loss %.3f\n", step, result.loss);
    }
  });
}
