// An own operation's own kernels for a GPU, on a GPU or on the stand-in of one: a model with it learns as on the CPU.
#include <atomic>
#include <cmath>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/cuda/device.hpp>
#include <parallel/run/cuda/threads_on_gpu.hpp>
#include <parallel/run/trainer.hpp>

#include "docs/own_operation.hpp"

namespace own {

namespace cuda = parallel::internals::cuda;

struct Softcap {
  const float* x;
  float* y;
  float cap;
  PARALLEL_DEVICE void operator()(std::int64_t i) const { y[i] = cap * std::tanh(x[i] / cap); }
};
void softcap_on_gpu(const Call& call) {
  const View &x = call.operands[0], &y = call.results[0];
  const Softcap body{x.as<const float>(), y.as<float>(), static_cast<float>(call.reals[0])};
  cuda::launch_each(cuda::gpu(call).stream(), y.elements(), body);
}

std::atomic<int> gradients = 0;  // how often the kernel below was asked for

/// y = cap tanh(x / cap) to g (1 - (y / cap)^2).
struct Slope {
  const float *y, *g;
  float* to;
  float cap;
  PARALLEL_DEVICE void operator()(std::int64_t i) const { to[i] = g[i] * (1 - y[i] / cap * (y[i] / cap)); }
};
/// In two passes, of which the first leaves y in the workspace.
void softcap_gradient_on_gpu(const Call& call) {
  const View &x = call.operands[0], &g = call.operands[1], &to = call.results[0];
  const auto cap = static_cast<float>(call.reals[0]);
  float* const y = static_cast<float*>(cuda::gpu(call).workspace());
  const cudaStream_t stream = cuda::gpu(call).stream();
  cuda::launch_each(stream, to.elements(), Softcap{x.as<const float>(), y, cap});
  cuda::launch_each(stream, to.elements(), Slope{y, g.as<const float>(), to.as<float>(), cap});
  ++gradients;
}

inline constexpr CpuKernels gpu_kernels[]{
    // operation                     float
    {&operation::softcap, softcap_on_gpu},
    {&operation::softcap_derivative, softcap_gradient_on_gpu},
};

}  // namespace own

namespace {

constexpr int steps = 20;

template <class Device>
std::vector<double> losses(const Mesh& mesh, std::span<const CpuKernels> own) {
  const OwnedPlan planned = derive<model::Step>(mesh);
  std::vector<float> x(8 * 16), y(8 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(2 * random_uniform(1, 0, i) - 1);
    y[i] = x[i] * x[i];
  }
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Device device = [&] {
      if constexpr (std::is_same_v<Device, Cuda>)
        return Cuda(0, false, own);
      else
        return Cpu{own};
    }();
    ParametersIn<MemoryOf<Device>> parameters(planned, world.rank(), 1, device);
    Trainer<Threads, Device> trainer(planned, world, parameters, {.beta2 = 0.99, .clip_norm = 1}, 1, device);
    for (int step = 0; step < steps; ++step) {
      trainer.executor().input(0, x);
      trainer.executor().input(1, y);
      const double loss = trainer.step(1e-2).loss;
      if (world.rank() == 0) result.push_back(loss);
    }
  });
  return result;
}

}  // namespace

TEST_CASE("a model with an own operation learns on a GPU, by kernels of its own, as on the CPU") {
  for (const Mesh& mesh : {Mesh{data = 1, tensor = 1}, Mesh{data = 2, tensor = 2}}) {
    own::gradients = 0;
    const std::vector<double> on_cpu = losses<Cpu>(mesh, own::kernels), on_gpu = losses<Cuda>(mesh, own::gpu_kernels);
    CHECK(own::gradients == steps * mesh.ranks());
    REQUIRE(on_gpu.size() == steps);
    CHECK(on_gpu.back() < on_gpu.front() / 2);
    for (std::size_t i = 0; i < on_gpu.size(); ++i) CHECK(on_gpu[i] == doctest::Approx(on_cpu[i]).epsilon(1e-4));
  }
}

TEST_CASE("what an own kernel finds in the workspace is as large as any plan says") {
  CHECK(Cuda::account.scratch({}).bytes() == static_cast<std::int64_t>(parallel::internals::Gpu::workspace_bytes));
}

TEST_CASE("a GPU without the kernels says so") {
  CHECK_THROWS_AS(losses<Cuda>(Mesh{data = 1, tensor = 1}, {}), CannotRun);
}
