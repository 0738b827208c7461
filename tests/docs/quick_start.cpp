// The program of docs/quick-start.md: a small network learns a sine on a mesh of ranks, which are threads or processes.
//
//   quick_start                     four threads, data=2,tensor=2
//   quick_start data=4,tensor=1     another mesh, the same losses
//   mpirun -n 4 quick_start --mpi   four processes
//
// Expected output:
// plan for data=2, tensor=2: 4 ranks
// ...
// step   0  loss 6.59...
// step 200  loss 0.00...
// step 400  loss 0.00...
// at 0.5 the network says 0.9...
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/trainer.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif

using namespace parallel;
using namespace parallel::axes;

struct Network {
  Parameter<float, Shape<1, 32 / tensor>> in{normal(3)};
  Parameter<float, Shape<32 / tensor>> in_bias{normal(1)};
  Parameter<float, Shape<32 / tensor, 1>> out{xavier};
  Parameter<float, Shape<1>> out_bias{zeros};

  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = gelu(matmul(x, in) + in_bias);  // f32[64/data, 32/tensor]
    return matmul(hidden, out) + out_bias;              // f32[64/data, 1] +tensor
  }
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square((*this)(x)-y)); }
};

using Batch = Tensor<float, Shape<64 / data, 1>>;
using Step = Training<Network, AdamW, Batch, Batch>;
using Predict = Evaluation<Network, Tensor<float, Shape<1, 1>>>;

constexpr Mesh four{data = 2, tensor = 2};
constexpr auto& step_plan = plan<Step, four>;
static_assert(step_plan.forward.collectives(tensor) == 1);   // the pending sum meets y
static_assert(step_plan.backward.collectives(tensor) == 0);  // x needs no gradient
static_assert(step_plan.backward.collectives(data) == 4);    // one gradient for each parameter
static_assert(step_plan.peak_memory() <= 16 << 10);

/// What each rank does: trains on a batch, then predicts. `World`: threads of this process, or processes over MPI.
template <Communicator World>
void train(World& world, const Mesh& mesh, const std::vector<float>& x, const std::vector<float>& y) {
  const OwnedPlan training = derive<Step>(mesh), predicting = derive<Predict, Step>(mesh);
  Parameters parameters(training, world.rank(), 1);  // 1: the seed
  Trainer<World, Cpu> step(training, world, parameters,
                           {.learning_rate = 1e-2, .beta2 = 0.99, .weight_decay = 0, .clip_norm = 1}, 1);
  for (int i = 0; i <= 400; ++i) {
    const double loss = step(x, y).loss;  // every rank is given the whole batch and keeps its part
    if (world.rank() == 0 && i % 200 == 0) std::printf("step %3d  loss %.4f\n", i, loss);
  }

  Executor<World, Cpu> predict(predicting, world, parameters);
  const double answer = predict(0.5F).output_scalar("result");
  if (world.rank() == 0) std::printf("at 0.5 the network says %.3f\n", answer);
}

int main(int argc, char** argv) {
  return guarded("quick_start", [&] {
    const bool mpi = argc > 1 && std::string_view(argv[argc - 1]) == "--mpi";
    const Mesh mesh = argc > (mpi ? 2 : 1) ? mesh_argument(argv[1], {&data, &tensor}) : four;
    std::vector<float> x, y;
    for (int i = 0; i < 64; ++i) {
      x.push_back(static_cast<float>(i) / 32 - 1);
      y.push_back(std::sin(3 * x.back()));
    }
    const OwnedPlan planned = derive<Step>(mesh);
    if (!mpi) {
      std::printf("%s\n", text(*planned).c_str());
      run_threads(mesh.ranks(), [&](Threads& world) { train(world, mesh, x, y); });
      return exit_code::done;
    }
#if defined(WITH_MPI)
    run_mpi([&](Mpi& world) {
      if (world.rank() == 0) std::printf("%s\n", text(*planned).c_str());
      train(world, mesh, x, y);
    });
    return exit_code::done;
#else
    throw Failure("this program was compiled without MPI", exit_code::unavailable);
#endif
  });
}
