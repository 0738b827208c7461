// The program of docs/gpu.md: one model on the CPU, on a GPU that the ranks share, and on a GPU for each rank; in float
// and in bf16.
//
//   nvcc -x cu -std=c++20 --expt-relaxed-constexpr -O2 -arch=native -Iinclude -isystem /usr/include/eigen3 tests/docs/gpu.cpp -o gpu -lcublasLt -lnccl
#include <parallel/communicator/nccl_threads.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/device/cuda.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/cuda/nccl_on_gpu.hpp>
#include <parallel/run/cuda/threads_on_gpu.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

template <class T>
struct Network {  // which token follows which
  Parameter<T, Shape<64 / tensor, 32>> token{normal(0.2)};
  Parameter<T, Shape<32, 128 / tensor>> up{normal(0.2)};
  Parameter<T, Shape<128 / tensor>> up_bias{zeros};
  Parameter<T, Shape<128 / tensor, 32>> down{normal(0.1)};

  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = embedding(tokens, token);
    const auto y = x + matmul(gelu(matmul(x, up) + up_bias), down);
    return mean(cross_entropy(matmul(y, transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<128 / data>>;
template <class T>
using Step = Training<Network<T>, AdamW, Tokens, Tokens>;

template <class T, Communicator World, Device Device>
void train(World& world, const Device& device, const char* where) {
  const OwnedPlan plan = derive<Step<T>>(Mesh{data = 1, tensor = 2});
  ParametersIn<MemoryOf<Device>> parameters(plan, world.rank(), 1, device);
  Trainer<World, Device> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0, .clip_norm = 1}, 1,
                                 device);
  std::vector<int> tokens, targets;
  for (int i = 0; i < 128; ++i) {
    tokens.push_back(i % 64);
    targets.push_back((5 * i + 3) % 64);
  }
  trainer.executor().input(0, tokens);
  trainer.executor().input(1, targets);
  for (int step = 0; step <= 20; ++step) {
    const StepResult result = trainer.step(1e-2);
    if (world.rank() == 0 && step % 10 == 0)
      std::printf("%-24s %s  step %3d  loss %.3f\n", where, name_of(Parameter<T, Shape<1>>::type.dtype).data(), step,
                  result.loss);
  }
}

int main() {
  return guarded("gpu", [] {
    run_threads(2, [](Threads& world) { train<float>(world, Cpu{}, "CPU"); });
    run_threads(2, [](Threads& world) { train<float>(world, Cuda(0), "two ranks on one GPU"); });
    run_nccl(2, [](Nccl& world) { train<float>(world, Cuda(world.gpu()), "a GPU each"); });
    run_nccl(2, [](Nccl& world) { train<bfloat16>(world, Cuda(world.gpu()), "a GPU each"); });
    return exit_code::done;
  });
}

// Expected output:
// CPU                      f32  step   0  loss 4.235
// CPU                      f32  step  10  loss 1.547
// CPU                      f32  step  20  loss 0.016
// two ranks on one GPU     f32  step   0  loss 4.235
// two ranks on one GPU     f32  step  10  loss 1.547
// two ranks on one GPU     f32  step  20  loss 0.016
// a GPU each               f32  step   0  loss 4.235
// a GPU each               f32  step  10  loss 1.547
// a GPU each               f32  step  20  loss 0.016
// a GPU each               bf16  step   0  loss 4.234
// a GPU each               bf16  step  10  loss 1.547
// a GPU each               bf16  step  20  loss 0.016
