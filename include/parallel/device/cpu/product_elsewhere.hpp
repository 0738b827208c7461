// A matrix product by the library that a build names instead of Eigen (PARALLEL_OPENBLAS, PARALLEL_ONEDNN,
// PARALLEL_MKL). A rank is one thread, so threads of the library's own are not asked for; memory that it keeps for
// itself is in no account.
#pragma once
#include <limits>

#include <parallel/algebra/halves.hpp>
#include <parallel/device/cpu/array.hpp>
#include <parallel/meta/product_library.hpp>

#if defined(PARALLEL_OPENBLAS)
#include <cblas.h>
#elif defined(PARALLEL_MKL)
#include <mkl.h>
#elif defined(PARALLEL_ONEDNN)
#include <dnnl.hpp>
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

#ifdef PARALLEL_ONEDNN
/// While this is there the library has one thread.
class OneThread {
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
 public:
  OneThread() { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
#endif
};
#endif

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
    [[maybe_unused]] const OneThread one;
    return dnnl_sgemm(left.transposed ? 'T' : 'N', right.transposed ? 'T' : 'N', m, n, k, factor, left.data,
                      left.stride, right.data, right.stride, add ? 1 : 0, out.data, out.stride) == dnnl_success;
  }
  return false;
#else
  return false;
#endif
}

#ifdef PARALLEL_ONEDNN
inline constexpr bool multiplies_bf16 = true;
/// out[m, n] = left[m, k] * right[k, n] of bf16, added up in f32 by what the processor has for it (AVX512_BF16, AMX). Of
/// `out`, which is bf16 or f32, each number is rounded once.
inline void multiply_bf16(Index m, Index n, Index k, const Matrix<const bfloat16>& left,
                          const Matrix<const bfloat16>& right, const Matrix<void>& out, DType dtype) {
  using dnnl::memory;
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  thread_local dnnl::stream stream(cpu);
  [[maybe_unused]] const OneThread one;
  const auto lies = [](Index rows, Index columns, Index stride, bool transposed, memory::data_type type) {
    return memory::desc({rows, columns}, type, transposed ? memory::dims{1, stride} : memory::dims{stride, 1});
  };
  using enum memory::data_type;
  const memory::desc l = lies(m, k, left.stride, left.transposed, bf16),
                     r = lies(k, n, right.stride, right.transposed, bf16),
                     o = lies(m, n, out.stride, false, dtype == DType::f32 ? f32 : bf16);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc planned(cpu, l, r, o);
#else
  const dnnl::matmul::primitive_desc planned({l, r, o}, cpu);
#endif
  const auto at = [](const void* data) { return const_cast<void*>(data); };
  dnnl::matmul(planned).execute(stream, {{DNNL_ARG_SRC, memory(l, cpu, at(left.data))},
                                         {DNNL_ARG_WEIGHTS, memory(r, cpu, at(right.data))},
                                         {DNNL_ARG_DST, memory(o, cpu, out.data)}});
  stream.wait();
}
#else
inline constexpr bool multiplies_bf16 = false;
inline void multiply_bf16(Index, Index, Index, const Matrix<const bfloat16>&, const Matrix<const bfloat16>&,
                          const Matrix<void>&, DType) {}
#endif

}  // namespace parallel::internals::cpu
