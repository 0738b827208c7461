// Matrix products by cuBLASLt: how one is computed is chosen once, before the first step.
#pragma once
#include <algorithm>
#include <parallel/device/cuda/gpu.hpp>
#include <parallel/operation/matmul.hpp>

namespace parallel::cuda {

/// A product out[m, n] = x[m, k] * w[k, n], or a batch of them, all by rows; cuBLASLt takes matrices by columns, to which all is transposed:
/// out^T = w^T * x^T. Addresses may change between runs, alignments may not.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool left_transposed = false, right_transposed = false;  ///< x lies as [k, m], w as [n, k]
  DType dtype = DType::f32;   ///< of x and w; sums are taken in float, of f64 in double
  DType result = DType::f32;  ///< of out
  int alignment = 256;  ///< of all addresses, in bytes

  bool operator==(const Product&) const = default;
};

/// cuBLASLt's description of a product, and the algorithm that it proposes.
class PreparedProduct : public Product {
 public:
  PreparedProduct(const Product& p, Gpu& gpu) : Product(p), gpu_(gpu) {
    const auto type_of = [](DType d) { return d == DType::f64 ? CUDA_R_64F : d == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; };
    const cudaDataType_t type = type_of(p.dtype);
    const cublasComputeType_t compute = p.dtype == DType::f64 ? CUBLAS_COMPUTE_64F : p.dtype == DType::f32 && gpu.tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&product_, compute, p.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F), name);
    const cublasOperation_t yes = CUBLAS_OP_T, no = CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, right_transposed ? yes : no), set(CUBLASLT_MATMUL_DESC_TRANSB, left_transposed ? yes : no);
    w_ = matrix(type, right_transposed ? k : n, right_transposed ? n : k);
    x_ = matrix(type, left_transposed ? m : k, left_transposed ? k : m);
    out_ = matrix(type_of(p.result), n, m);
    choose();
  }
  PreparedProduct(const PreparedProduct&) = delete;
  PreparedProduct& operator=(const PreparedProduct&) = delete;
  ~PreparedProduct() {
    for (const cublasLtMatrixLayout_t layout : {w_, x_, out_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
  }

  void run(const void* x, const void* w, void* out) const {
    const double ones[2]{1, 0};
    const float singles[2]{1, 0};
    const void* const alpha = dtype == DType::f64 ? static_cast<const void*>(&ones[0]) : &singles[0];
    const void* const beta = dtype == DType::f64 ? static_cast<const void*>(&ones[1]) : &singles[1];
    check(cublasLtMatmul(gpu_.products(), product_, alpha, w, w_, x, x_, beta, out, out_, out, out_, &algorithm_, gpu_.workspace(), Gpu::workspace_bytes, gpu_.stream()), name);
  }

 private:
  static constexpr const char* name = "a matrix product";
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value), name);
  }
  /// Column-major, columns side by side.
  cublasLtMatrixLayout_t matrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns) const {
    cublasLtMatrixLayout_t layout = nullptr;
    check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows), name);
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t apart = rows * columns;
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), name);
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart), name);
    return layout;
  }
  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), name);
    const std::size_t room = Gpu::workspace_bytes;
    const auto aligned = static_cast<std::uint32_t>(alignment);
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room), name);
    for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &aligned, sizeof aligned), name);
    cublasLtMatmulHeuristicResult_t proposed{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(gpu_.products(), product_, w_, x_, out_, out_, preference, 1, &proposed, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    check(status, name);
    if (found == 0)
      throw GpuFailed("cublasLt has no algorithm for a product of " + std::to_string(m) + " x " + std::to_string(k) + " and " + std::to_string(k) + " x " + std::to_string(n) + " " +
                      std::string(name_of(dtype)));
    algorithm_ = proposed.algo;
  }

  Gpu& gpu_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

/// What a call of matmul asks for. Dimensions that stand beside each other are one.
inline Product product_of(const Call& call) {
  const View &x = call.operands[0], &w = call.operands[1], &y = call.results[0];
  const operation::Product p(call.ints);
  Product result;
  const int free_left = x.rank - p.batch - p.contracted;
  result.batch = x.extent(0, p.batch);
  result.m = y.extent(p.batch, p.batch + free_left), result.n = y.extent(p.batch + free_left, y.rank);
  result.k = p.left_transposed ? x.extent(p.batch, p.batch + p.contracted) : x.extent(x.rank - p.contracted, x.rank);
  result.left_transposed = p.left_transposed != 0, result.right_transposed = p.right_transposed != 0;
  result.dtype = x.dtype, result.result = y.dtype;
  for (const View* v : {&x, &w, &y})  // a slice of a stack begins at a multiple of its size
    while (result.alignment > 1 && (reinterpret_cast<std::uintptr_t>(v->data) % static_cast<std::uintptr_t>(result.alignment) != 0 ||
                                    v->elements() * bytes_of(v->dtype) % result.alignment != 0))
      result.alignment /= 2;
  return result;
}

/// (x, w) -> y
inline void matmul(const Call& call) {
  const View& y = call.results[0];
  const PreparedProduct* const product = cuda::product(call);
  if (product != nullptr)
    product->run(call.operands[0].data, call.operands[1].data, y.data);
  else if (y.elements() > 0)  // nothing is contracted
    check(cudaMemsetAsync(y.data, 0, static_cast<std::size_t>(y.elements() * bytes_of(y.dtype)), gpu(call).stream()), "zeros");
}

}  // namespace parallel::cuda
