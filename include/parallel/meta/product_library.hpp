// Whose matrix products the CPU's kernels take: Eigen's, unless a build names another library in a word. All units of a
// program say the same.
#pragma once
#include <string>

#if defined(PARALLEL_OPENBLAS) + defined(PARALLEL_ONEDNN) + defined(PARALLEL_MKL) > 1
#error "parallel: matrix products are of one library; say one of PARALLEL_OPENBLAS, PARALLEL_ONEDNN and PARALLEL_MKL"
#endif

#if defined(PARALLEL_OPENBLAS)
#define bfloat16 openblas_bfloat16  // which would be a type of every program
#include <cblas.h>
#undef bfloat16
#elif defined(PARALLEL_MKL)
#include <mkl.h>
#elif defined(PARALLEL_ONEDNN)
#include <dnnl.hpp>
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#elif DNNL_CPU_RUNTIME != DNNL_RUNTIME_SEQ
#error "parallel: this oneDNN has threads that a rank cannot switch off; take one of OpenMP, or without threads"
#endif
#endif

namespace parallel::internals {
/// Its name, version and, where it chooses kernels by that, the processor: ranks that differ in it round differently.
inline std::string product_library() {
#if defined(PARALLEL_OPENBLAS)
  return openblas_get_config();  // "OpenBLAS 0.3.21 ... SkylakeX ..."
#elif defined(PARALLEL_ONEDNN)
  const dnnl_version_t* const v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) +
         " for processors of kind " + std::to_string(dnnl_get_effective_cpu_isa());
#elif defined(PARALLEL_MKL)
  MKLVersion v;
  mkl_get_version(&v);
  return "MKL " + std::to_string(v.MajorVersion) + "." + std::to_string(v.MinorVersion) + "." +
         std::to_string(v.UpdateVersion) + " for " + v.Processor;
#else
  return "Eigen";
#endif
}
}  // namespace parallel::internals
