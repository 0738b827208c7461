// The GPU's kernels, compiled once for all tests.
#include <parallel/device/cuda.hpp>

PARALLEL_CUDA_KERNELS;
