// A matrix product by the library that a build names instead of Eigen (PARALLEL_OPENBLAS, PARALLEL_ONEDNN,
// PARALLEL_MKL). A rank is one thread, so threads of the library's own are not asked for; memory that it keeps for
// itself is in no account.
#pragma once
#include <limits>

#include <parallel/device/cpu/array.hpp>
#include <parallel/meta/product_library.hpp>

#if defined(PARALLEL_OPENBLAS)
#include <cblas.h>
#elif defined(PARALLEL_MKL)
#include <mkl.h>
#elif defined(PARALLEL_ONEDNN)
#include <dnnl.h>
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif
#endif

namespace parallel::internals::cpu {

/// A matrix in memory. Element (i, j) is data[i * stride + j], where it lies transposed data[i + j * stride].
template <class T>
struct Matrix {
  T* data = nullptr;
  Index stride = 0;
  bool transposed = false;
};

/// out[m, n] = factor * left[m, k] * right[k, n], or added to what stands there, by another library; false where Eigen's
/// is to be taken: none is named, or it has no such product.
template <class T>
bool multiplied_elsewhere([[maybe_unused]] Index m, [[maybe_unused]] Index n, [[maybe_unused]] Index k,
                          [[maybe_unused]] T factor, [[maybe_unused]] const Matrix<const T>& left,
                          [[maybe_unused]] const Matrix<const T>& right, [[maybe_unused]] const Matrix<T>& out,
                          [[maybe_unused]] bool add) {
#if defined(PARALLEL_OPENBLAS) || defined(PARALLEL_MKL)
#ifdef PARALLEL_OPENBLAS
  using Whole = blasint;
  [[maybe_unused]] static const bool alone = (openblas_set_num_threads(1), true);
#else
  using Whole = MKL_INT;
  [[maybe_unused]] thread_local const int before = mkl_set_num_threads_local(1);
#endif
  constexpr Index most = std::numeric_limits<Whole>::max();
  if (std::max({m, n, k, left.stride, right.stride, out.stride}) > most) return false;
  const auto whole = [](Index i) { return static_cast<Whole>(i); };
  const auto lies = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const auto by = [&](auto gemm) {
    gemm(CblasRowMajor, lies(left.transposed), lies(right.transposed), whole(m), whole(n), whole(k), factor, left.data,
         whole(left.stride), right.data, whole(right.stride), add ? T{1} : T{0}, out.data, whole(out.stride));
  };
  if constexpr (std::is_same_v<T, float>)
    by(cblas_sgemm);
  else
    by(cblas_dgemm);
  return true;
#elif defined(PARALLEL_ONEDNN)
  if constexpr (std::is_same_v<T, float>) {
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    const dnnl_status_t status =
        dnnl_sgemm(left.transposed ? 'T' : 'N', right.transposed ? 'T' : 'N', m, n, k, factor, left.data, left.stride,
                   right.data, right.stride, add ? 1 : 0, out.data, out.stride);
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
    omp_set_num_threads(before);
#endif
    return status == dnnl_success;
  }
  return false;
#else
  return false;
#endif
}

}  // namespace parallel::internals::cpu
