// What the CUDA libraries answer: nothing, or an exception with one sentence.
#pragma once
#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <parallel/meta/failure.hpp>

namespace parallel::internals {

/// A GPU that is not there, or that refused what it was asked for. Exit code 69 (`unavailable`), or 1 where the work
/// itself failed.
struct GpuFailed : Failure {
  using Failure::Failure;
};

namespace cuda {

/// Throws GpuFailed: "WHAT: the reason".
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw GpuFailed(std::string(what) + ": " + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw GpuFailed(std::string(what) + ": cublasLt answers " + std::to_string(static_cast<int>(status)));
}

}  // namespace cuda
}  // namespace parallel::internals

namespace parallel {
using internals::GpuFailed;
}  // namespace parallel
