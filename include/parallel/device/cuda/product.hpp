// Matrix products by cuBLASLt: how one is computed is chosen once, before the first step.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>

#include <parallel/device/cuda/gpu.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/unary.hpp>

namespace parallel::internals::cuda {

/// What is done to a product before it is written.
enum class Epilogue : std::uint8_t {
  none,
  bias,               ///< a number of each column is added
  bias_gelu,          ///< and then gelu (its tanh form) taken
  bias_gelu_and_sum,  ///< as before; the sum, of which the backward pass needs gelu's derivative, is written, too
  gelu_derivative,    ///< it is multiplied by gelu's derivative at another matrix
  sum_left,           ///< nothing; beside it x is summed over what is contracted
  sum_right,          ///< or w
};

/// Whether it reads or writes a matrix beside.
constexpr bool has_second_matrix(Epilogue e) {
  return e == Epilogue::bias_gelu_and_sum || e == Epilogue::gelu_derivative;
}

/// A product out[m, n] = x[m, k] * w[k, n], or a batch of them, all by rows; cuBLASLt takes matrices by columns, to
/// which all is transposed: out^T = w^T * x^T. Addresses may change between runs, alignments may not.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool left_transposed = false, right_transposed = false;  ///< x lies as [k, m], w as [n, k]
  DType dtype = DType::f32;                                ///< of x and w; sums are taken in float, of f64 in double
  DType result = DType::f32;                               ///< of out
  Epilogue epilogue = Epilogue::none;
  int alignment = 256;  ///< of all addresses, in bytes

  bool operator==(const Product&) const = default;
};

/// cuBLASLt's description of a product, and the algorithm that it proposes.
class PreparedProduct : public Product {
 public:
  PreparedProduct(const Product& p, Gpu& gpu) : Product(p), gpu_(gpu) {
    const auto type_of = [](DType d) {
      return d == DType::f64 ? CUDA_R_64F : d == DType::bf16 ? CUDA_R_16BF : d == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
    };
    const cudaDataType_t type = type_of(p.dtype);
    const cublasComputeType_t compute = p.dtype == DType::f64                 ? CUBLAS_COMPUTE_64F
                                        : p.dtype == DType::f32 && gpu.tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                              : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&product_, compute, p.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F), name);
    const cublasOperation_t yes = CUBLAS_OP_T, no = CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, right_transposed ? yes : no);
    set(CUBLASLT_MATMUL_DESC_TRANSB, left_transposed ? yes : no);
    w_ = matrix(type, right_transposed ? k : n, right_transposed ? n : k);
    x_ = matrix(type, left_transposed ? m : k, left_transposed ? k : m);
    out_ = matrix(type_of(p.result), n, m);
    describe_epilogue();
    choose();
  }
  PreparedProduct(const PreparedProduct&) = delete;
  PreparedProduct& operator=(const PreparedProduct&) = delete;
  ~PreparedProduct() {
    for (const cublasLtMatrixLayout_t layout : {w_, x_, out_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
  }

  /// Whether cuBLASLt has an algorithm for it.
  explicit operator bool() const { return found_; }
  /// `bias`: of the columns, or the sums of a factor, which are written; `beside`: the sum that is written, or where
  /// the derivative is taken.
  void run(const void* x, const void* w, void* out, const void* bias = nullptr, void* beside = nullptr) const {
    if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (beside != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside);
    const double ones[2]{1, 0};
    const float singles[2]{1, 0};
    const void* const alpha = dtype == DType::f64 ? static_cast<const void*>(&ones[0]) : &singles[0];
    const void* const beta = dtype == DType::f64 ? static_cast<const void*>(&ones[1]) : &singles[1];
    check(cublasLtMatmul(gpu_.products(), product_, alpha, w, w_, x, x_, beta, out, out_, out, out_, &algorithm_,
                         gpu_.workspace(), Gpu::workspace_bytes, gpu_.stream()),
          name);
  }

 private:
  static constexpr const char* name = "a matrix product";
  void describe_epilogue() {
    if (epilogue == Epilogue::none) return;
    const cublasLtEpilogue_t what = epilogue == Epilogue::bias                ? CUBLASLT_EPILOGUE_BIAS
                                    : epilogue == Epilogue::bias_gelu         ? CUBLASLT_EPILOGUE_GELU_BIAS
                                    : epilogue == Epilogue::bias_gelu_and_sum ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                    : epilogue == Epilogue::sum_left          ? CUBLASLT_EPILOGUE_BGRADB
                                    : epilogue == Epilogue::sum_right         ? CUBLASLT_EPILOGUE_BGRADA
                                                                              : CUBLASLT_EPILOGUE_DGELU;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, what);
    if (has_second_matrix(epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, n);
    if (epilogue == Epilogue::gelu_derivative) return;  // it has no bias, and is refused where one is named
    const auto* const aligned = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(alignment));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);  // by which an algorithm is chosen, too
    if (has_second_matrix(epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    check(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value), name);
  }
  /// Column-major, columns side by side.
  cublasLtMatrixLayout_t matrix(cudaDataType_t type, std::int64_t rows, std::int64_t columns) const {
    cublasLtMatrixLayout_t layout = nullptr;
    check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          name);
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t apart = rows * columns;
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), name);
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
          name);
    return layout;
  }
  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), name);
    const std::size_t room = Gpu::workspace_bytes;
    const auto aligned = static_cast<std::uint32_t>(alignment);
    check(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
        name);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &aligned, sizeof aligned), name);
    cublasLtMatmulHeuristicResult_t proposed{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(gpu_.products(), product_, w_, x_, out_, out_, preference, 1, &proposed, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    // in halves epilogues are proposed for whatever addresses, and refused when they run (15, not supported)
    const bool too_near = epilogue != Epilogue::none && is_half(dtype) && alignment < 16;
    found_ = status == CUBLAS_STATUS_SUCCESS && found > 0 && !too_near;
    algorithm_ = proposed.algo;
  }

  Gpu& gpu_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool found_ = false;
};

/// What a call of matmul, and of what is computed with it, asks for. Dimensions that stand beside each other are one.
inline Product product_of(std::span<const Call> calls, Epilogue epilogue) {
  const View &x = calls[0].operands[0], &y = calls[0].results[0];
  const operation::Product p(calls[0].ints);
  Product result;
  const int free_left = x.rank - p.batch - p.contracted;
  result.batch = x.extent(0, p.batch);
  result.m = y.extent(p.batch, p.batch + free_left);
  result.n = y.extent(p.batch + free_left, y.rank);
  result.k = p.left_transposed ? x.extent(p.batch, p.batch + p.contracted) : x.extent(x.rank - p.contracted, x.rank);
  result.left_transposed = p.left_transposed != 0;
  result.right_transposed = p.right_transposed != 0;
  result.dtype = x.dtype;
  result.result = y.dtype;
  result.epilogue = epilogue;
  const auto align = [&](const View& v) {  // a slice of a stack begins at a multiple of its size
    while (result.alignment > 1 &&
           (reinterpret_cast<std::uintptr_t>(v.data) % static_cast<std::uintptr_t>(result.alignment) != 0 ||
            v.elements() * bytes_of(v.dtype) % result.alignment != 0))
      result.alignment /= 2;
  };
  for (const Call& call : calls) {
    for (const View& v : call.operands) align(v);
    for (const View& v : call.results) align(v);
  }
  return result;
}

/// (x, w) -> y
template <class T>
void matmul(const Call& call) {
  const View& y = call.results[0];
  const PreparedProduct* const product = cuda::product(call);
  if (product != nullptr)
    product->run(call.operands[0].data, call.operands[1].data, y.data);
  else if (y.elements() > 0)  // nothing is contracted
    check(cudaMemsetAsync(y.data, 0, y.bytes(), gpu(call).stream()), "zeros");
}
/// A product, its sum with a bias, and perhaps gelu of that; the product is not written.
inline void matmul_bias(std::span<const Call> calls) {
  const PreparedProduct& product = *cuda::product(calls[0]);
  const View &out = calls[0].results[0], &sum = calls[1].results[0];
  const View& bias = calls[1].operands[calls[1].operands[0].data == out.data ? 1 : 0];
  product.run(calls[0].operands[0].data, calls[0].operands[1].data, calls.back().results[0].data, bias.data,
              product.epilogue == Epilogue::bias_gelu_and_sum ? sum.data : nullptr);
}
/// A product that is the gradient of gelu(x) and is not written, and that of x.
inline void matmul_gelu_derivative(std::span<const Call> calls) {
  cuda::product(calls[0])->run(calls[0].operands[0].data, calls[0].operands[1].data, calls[1].results[0].data, nullptr,
                               calls[1].operands[0].data);
}
/// A product and the sum of one of its factors over what is contracted.
inline void matmul_sum(std::span<const Call> calls) {
  cuda::product(calls[0])->run(calls[0].operands[0].data, calls[0].operands[1].data, calls[0].results[0].data,
                               calls[1].results[0].data);
}

/// Whether a sum beside a product is of its left factor; both may be one.
inline bool sums_left(std::span<const Call> calls) {
  return calls[1].operands[0].data == calls[0].operands[0].data &&
         operation::Product(calls[0].ints).left_transposed != 0;
}
/// A kernel that computes a product, and what follows it, by one call of cuBLASLt.
struct ProductKernel {
  FusedKernel kernel{};
  Epilogue epilogue = Epilogue::none;
};
/// None where there is no such product, or where something between is needed that cuBLASLt does not write.
inline ProductKernel product_kernel(std::span<const Call> calls) {
  // cuBLASLt's epilogues of doubles are not precise: on an H200 a bias came by 3e-10 and gelu by 1e-9 near
  if (calls[0].results[0].dtype == DType::f64) return {};
  const auto are = [&](std::initializer_list<const Operation*> operations) {
    return std::equal(calls.begin(), calls.end(), operations.begin(), operations.end(),
                      [](const Call& call, const Operation* operation) { return call.operation == operation; });
  };
  const auto passed = [&](std::size_t i) { return calls[i].results[0].data == calls[i + 1].results[0].data; };
  if (are({&operation::matmul, &operation::add}) && passed(0)) return {{matmul_bias}, Epilogue::bias};
  // nor is gelu of floats, by up to 4e-6, so that ranks whose products have no epilogue would differ from those that do
  const bool rough = is_half(calls[0].results[0].dtype);
  if (rough && are({&operation::matmul, &operation::add, &operation::gelu}) && passed(0))
    return {{matmul_bias}, passed(1) ? Epilogue::bias_gelu : Epilogue::bias_gelu_and_sum};
  if (rough && are({&operation::matmul, &operation::gelu_derivative}) && passed(0))
    return {{matmul_gelu_derivative}, Epilogue::gelu_derivative};
  if (are({&operation::matmul, &operation::sum_to}))
    return {{matmul_sum}, sums_left(calls) ? Epilogue::sum_left : Epilogue::sum_right};
  return {};
}

}  // namespace parallel::internals::cuda
