// A matrix product by the library that a build names instead of Eigen (PARALLEL_OPENBLAS, PARALLEL_ONEDNN,
// PARALLEL_MKL). It has one thread, that of its caller: among a rank's threads a product is shared out before
// (matmul.hpp). Memory that it keeps for itself is in no account.
#pragma once
#include <limits>

#include <parallel/algebra/halves.hpp>
#include <parallel/device/cpu/array.hpp>
#include <parallel/meta/product_library.hpp>

namespace parallel::internals::cpu {

/// A matrix in memory. Element (i, j) is data[i * stride + j], where it lies transposed data[i + j * stride].
template <class T>
struct Matrix {
  T* data = nullptr;
  Index stride = 0;
  bool transposed = false;

  /// From a row, or a column, on.
  Matrix from_row(Index i) const { return {data + (transposed ? i : i * stride), stride, transposed}; }
  Matrix from_column(Index j) const { return {data + (transposed ? j * stride : j), stride, transposed}; }
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

/// out[m, n] = factor * left[m, k] * right[k, n], or added to what stands there, by another library; false where
/// Eigen's is to be taken: none is named, or it has no such product.
template <class T>
bool multiplied_elsewhere([[maybe_unused]] Index m, [[maybe_unused]] Index n, [[maybe_unused]] Index k,
                          [[maybe_unused]] T factor, [[maybe_unused]] const Matrix<const T>& left,
                          [[maybe_unused]] const Matrix<const T>& right, [[maybe_unused]] const Matrix<T>& out,
                          [[maybe_unused]] bool add) {
#if defined(PARALLEL_OPENBLAS) || defined(PARALLEL_MKL)
#ifdef PARALLEL_OPENBLAS
  using Whole = blasint;
  [[maybe_unused]] thread_local const bool alone = (openblas_set_num_threads(1), true);
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
/// Whether products of bf16 need not be widened: the processor has them (AVX512_BF16, AMX).
inline bool multiplies_bf16() {
  constexpr int wanted = dnnl_cpu_isa_avx512_core_bf16;
  return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}
/// Products out[m, n] = left[m, k] * right[k, n] of bf16 that lie alike, added up in f32. Of `out`, which is bf16 or
/// f32, each number is rounded once.
class ProductOfBf16 {
 public:
  ProductOfBf16(Index m, Index n, Index k, const Matrix<const bfloat16>& left, const Matrix<const bfloat16>& right,
                DType out)
      : left_(lies(m, k, left, dnnl::memory::data_type::bf16)),
        right_(lies(k, n, right, dnnl::memory::data_type::bf16)),
        out_(lies(m, n, Matrix<void>{nullptr, n},
                  out == DType::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16)) {}
  void operator()(const bfloat16* left, const bfloat16* right, void* out) {
    thread_local dnnl::stream stream(processor());
    const auto memory = [](const dnnl::memory::desc& lies, const void* data) {
      return dnnl::memory(lies, processor(), const_cast<void*>(data));
    };
    product_.execute(stream, {{DNNL_ARG_SRC, memory(left_, left)},
                              {DNNL_ARG_WEIGHTS, memory(right_, right)},
                              {DNNL_ARG_DST, memory(out_, out)}});
    stream.wait();
  }

 private:
  static const dnnl::engine& processor() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
  }
  template <class T>
  static dnnl::memory::desc lies(Index rows, Index columns, const Matrix<T>& m, dnnl::memory::data_type type) {
    return {{rows, columns}, type, m.transposed ? dnnl::memory::dims{1, m.stride} : dnnl::memory::dims{m.stride, 1}};
  }
  dnnl::matmul::primitive_desc planned() const {
#if DNNL_VERSION_MAJOR >= 3
    return {processor(), left_, right_, out_};
#else
    return {{left_, right_, out_}, processor()};
#endif
  }

  OneThread one_;
  dnnl::memory::desc left_, right_, out_;
  dnnl::matmul product_{planned()};
};
#else
inline bool multiplies_bf16() { return false; }
class ProductOfBf16 {
 public:
  ProductOfBf16(Index, Index, Index, const Matrix<const bfloat16>&, const Matrix<const bfloat16>&, DType) {}
  void operator()(const bfloat16*, const bfloat16*, void*) {}
};
#endif

}  // namespace parallel::internals::cpu
