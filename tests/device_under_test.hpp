// The device on which programs are tested: the CPU, or a GPU where PARALLEL_TEST_CUDA says so (a real one under nvcc, else its stand-in).
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>
#if defined(PARALLEL_TEST_CUDA)
#include <parallel/device/cuda/device.hpp>
#include <parallel/run/threads_on_gpu.hpp>
#else
#include <parallel/device/cpu/device.hpp>
#endif

namespace under_test {

#if defined(PARALLEL_TEST_CUDA)
using Device = parallel::CudaDouble;
#else
using Device = parallel::CpuDouble;
#endif
using Parameters = parallel::ParametersIn<parallel::MemoryOf<Device>>;

}  // namespace under_test
