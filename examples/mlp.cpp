// A two-layer perceptron, tensor parallel: the compiler derives the two reductions that Megatron-LM writes by hand.
//
// `up` is split by columns and `down` by rows, so the hidden layer is split and nothing moves between them. Behind
// `down` each rank holds a term of the result: the subtraction of y cannot take a pending sum, so it is completed there
// (Megatron's g). The gradient of x would be reduced where x becomes Broadcast (Megatron's f), but nobody asks for it.
// With `data`, the batch is split and the parameters' gradients are reduced once per step. Nothing of this is written
// below but the placements.
//
//   meson compile -C build/demo examples/mlp && build/demo/examples/mlp [--record FILE]
#include <cstdio>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Mlp {                                                 // Megatron-LM, Figure 3a
  Parameter<float, Shape<16, 64 / tensor>> up{normal(0.3)};  // column parallel
  Parameter<float, Shape<64 / tensor>> up_bias{zeros};
  Parameter<float, Shape<64 / tensor, 16>> down{normal(0.1)};  // row parallel
  Parameter<float, Shape<16>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
  }
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
static_assert(mlp_plan.backward.collectives(data) == 4);  // four parameters' gradients, once per step
static_assert(mlp_plan.peak_memory() <= 64 << 10);

int main(int argc, char** argv) {
  return guarded("mlp", [&] {
    const std::string record = record_argument(argc, argv);
    std::printf("%s\n", text(mlp_plan).c_str());
    run_threads(4, [&](Threads& world) {
      Parameters parameters(mlp_plan, world.rank(), 1);
      Trainer<Threads, Cpu> trainer(mlp_plan, world, parameters,
                                    {.learning_rate = 1e-2, .beta2 = 0.99, .weight_decay = 0, .clip_norm = 1}, 1);
      Recording recording(record, mlp_plan, world.rank());
      trainer.executor().record(recording);
      std::vector<float> x(32 * 16), y(32 * 16);
      for (int step = 0; step <= 200; ++step) {
        for (std::size_t i = 0; i < x.size(); ++i) {  // learn to shift a row by one place and square it
          x[i] = static_cast<float>(2 * random_uniform(7, static_cast<std::uint64_t>(step), i) - 1);
          y[i / 16 * 16 + (i + 1) % 16] = x[i] * x[i];
        }
        const double loss = trainer(x, y).loss;
        if (world.rank() == 0 && step % 50 == 0) std::printf("step %3d  loss %.3f\n", step, loss);
      }
      recording.write();
    });
    return exit_code::done;
  });
}

// Expected output:
// plan for data=2, tensor=2: 4 ranks
//
// phase      calls  collective      axis         tensor                                   message    sent       member, line
// forward    1      all_reduce      tensor       f32[32/data, 16] +tensor                 1 KiB      1 KiB      mlp.down_bias, mlp.cpp:33
// forward    1      all_reduce      data         f32[] +data                              4 B        4 B        mlp.down_bias, mlp.cpp:33
// backward   1      all_reduce      data         f32[16] +data                            64 B       64 B       mlp.down_bias, mlp.cpp:27
// backward   1      all_reduce      data         f32[64/tensor, 16] +data                 2 KiB      2 KiB      mlp.down, mlp.cpp:27
// backward   1      all_reduce      data         f32[64/tensor] +data                     128 B      128 B      mlp.up_bias, mlp.cpp:27
// backward   1      all_reduce      data         f32[16, 64/tensor] +data                 2 KiB      2 KiB      mlp.up, mlp.cpp:27
// optimizer  1      all_reduce      tensor       f64[] +tensor                            8 B        8 B        -
//
// per step and rank      axis         collectives  calls  message    sent
// forward                data         1            1      4 B        4 B
// forward                tensor       1            1      1 KiB      1 KiB
// backward               data         4            4      4.2 KiB    4.2 KiB
// optimizer              tensor       1            1      8 B        8 B
// counter of steps       data+tensor  1            1      16 B       24 B
// inputs at steps 2^k    data+tensor  1            1      128 B      96 B
// per run and rank
// agreement at start     data+tensor  2            2      32 B       48 B
// agreement at end       data+tensor  1            1      16 B       24 B
//
// memory per rank        peak 23.9 KiB, of it an arena of 9.2 KiB, whose values share room over the step
//   parameters           4.2 KiB
//   optimizer state      8.4 KiB
//   inputs               2 KiB
//   parameters in use    64 B
//   gradients            4.2 KiB
//   activations          5 KiB
//   temporaries          12.1 KiB
//   scratch              at most 4 KiB, in which kernels work
// on the CPU             at most 27.9 KiB in all
//
// computation per rank   8.71e+04 FLOP a step
//   1.3 % of it computed 2 times on data
//   2.4 % of it computed 2 times on tensor
//
// step   0  loss ...
// step  50  loss ...
// step 100  loss ...
// step 150  loss ...
// step 200  loss ...
