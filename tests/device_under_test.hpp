// The device on which programs are tested: the CPU, or a GPU where PARALLEL_TEST_CUDA says so (a real one under nvcc,
// else its stand-in).
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>
#if defined(PARALLEL_TEST_CUDA)
#include <parallel/device/cuda/host.hpp>
#include <parallel/run/cuda/threads_on_gpu.hpp>
#else
#include <parallel/device/cpu/device.hpp>
#endif

namespace under_test {

#if defined(PARALLEL_STAND_IN)
/// Tells the stand-in what a kernel reads and writes: its operands and results. So it finds every pair of accesses that
/// neither a stream nor an event puts in order, whatever order they happen to come in.
class Watched : public parallel::CudaAndCpuDouble {
 public:
  using parallel::CudaAndCpuDouble::CudaAndCpuDouble;

  parallel::Kernel kernel(const parallel::Operation& operation, parallel::Call& call) const {
    const parallel::Kernel found = parallel::CudaAndCpuDouble::kernel(operation, call);
    if (found == nullptr) return nullptr;
    call.context =
        &contexts_->emplace_back(Context{*static_cast<parallel::internals::cuda::Context*>(call.context), found, {}});
    return [](const parallel::Call& c) {
      declare(c);
      static_cast<const Context*>(c.context)->kernel(c);
      stand_in::declared.clear();
    };
  }
  parallel::FusedKernel fused(std::span<parallel::Call> calls) const {
    parallel::FusedKernel found = parallel::CudaAndCpuDouble::fused(calls);
    if (!found) return {};
    calls[0].context = &contexts_->emplace_back(
        Context{*static_cast<parallel::internals::cuda::Context*>(calls[0].context), nullptr, found});
    found.compute = [](std::span<const parallel::Call> all) {
      for (const parallel::Call& c : all) declare(c);
      static_cast<const Context*>(all[0].context)->fused.compute(all);
      stand_in::declared.clear();
    };
    return found;
  }

 private:
  struct Context : parallel::internals::cuda::Context {
    parallel::Kernel kernel;
    parallel::FusedKernel fused;
  };
  static void declare(const parallel::Call& c) {
    for (const parallel::View& v : c.operands) stand_in::declared.push_back(stand_in::reads(v.data, v.bytes()));
    for (const parallel::View& v : c.results) stand_in::declared.push_back(stand_in::writes(v.data, v.bytes()));
  }
  std::shared_ptr<std::deque<Context>> contexts_ = std::make_shared<std::deque<Context>>();
};
using Device = Watched;
#elif defined(PARALLEL_TEST_CUDA)
using Device = parallel::CudaAndCpuDouble;
#else
using Device = parallel::CpuDouble;
#endif
using Parameters = parallel::ParametersIn<parallel::MemoryOf<Device>>;

}  // namespace under_test
