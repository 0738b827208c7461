// A stand-in for cuBLASLt's header of this name: products of matrices by their definition, with what follows them (epilogues), on a stream.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime_api.h"

typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType_t;
typedef cudaDataType_t cudaDataType;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70
} cublasComputeType_t;
typedef enum { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 } cublasLtOrder_t;
typedef enum { CUBLASLT_POINTER_MODE_HOST = 0, CUBLASLT_POINTER_MODE_DEVICE = 1 } cublasLtPointerMode_t;
typedef enum {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
  CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,
  CUBLASLT_MATRIX_LAYOUT_LD = 4,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
} cublasLtMatrixLayoutAttribute_t;
typedef enum {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
  CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
} cublasLtMatmulDescAttributes_t;
typedef enum {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_AUX = 32 | 128,
  CUBLASLT_EPILOGUE_GELU_BIAS = 32 | 4,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 32 | 128 | 4,
  CUBLASLT_EPILOGUE_DGELU = 64 | 128,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 64 | 128 | 16,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
} cublasLtEpilogue_t;
typedef enum {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
} cublasLtMatmulPreferenceAttributes_t;

struct cublasLtContext {};
typedef struct cublasLtContext* cublasLtHandle_t;
typedef struct {
  cudaDataType type;
  std::uint64_t rows, cols;
  std::int64_t ld;
  std::int32_t order, batch;
  std::int64_t stride;
} cublasLtMatrixLayoutOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef struct {
  std::int32_t compute, scale, pointer_mode, a, b;
  std::uint32_t epilogue;
  void* bias;
  std::int64_t bias_stride;
  void* aux;
  std::int64_t aux_ld, aux_stride;
  std::int32_t aux_type, bias_type;  ///< -1: as the header says where none is set
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef struct {
  std::uint64_t workspace;
} cublasLtMatmulPreferenceOpaque_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;
typedef struct {
  std::uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;

namespace stand_in {

inline std::size_t bytes_of(std::int32_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
inline double load(const void* p, std::int32_t type, std::int64_t i) {
  if (type == CUDA_R_64F) return static_cast<const double*>(p)[i];
  if (type == CUDA_R_32F) return static_cast<double>(static_cast<const float*>(p)[i]);
  if (type == CUDA_R_16F) return static_cast<double>(__half2float(static_cast<const __half*>(p)[i]));
  return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]));
}
inline void store(void* p, std::int32_t type, std::int64_t i, double value) {
  if (type == CUDA_R_64F)
    static_cast<double*>(p)[i] = value;
  else if (type == CUDA_R_32F)
    static_cast<float*>(p)[i] = static_cast<float>(value);
  else if (type == CUDA_R_16F)
    static_cast<__half*>(p)[i] = __float2half(static_cast<float>(value));
  else
    static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16(static_cast<float>(value));
}
/// To the ten bits of tf32, to the nearest.
inline double tf32(double x) {
  const auto u = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return static_cast<double>(std::bit_cast<float>((u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu));
}
inline double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
inline double gelu_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

struct Product {
  cublasLtMatmulDescOpaque_t d;
  cublasLtMatrixLayoutOpaque_t la, lb, lc, ld;
  double alpha, beta;
  const void *a, *b, *c;
  void* out;

  bool has(unsigned bit) const { return (d.epilogue & bit) != 0; }
  std::int64_t m() const { return static_cast<std::int64_t>(ld.rows); }
  std::int64_t n() const { return static_cast<std::int64_t>(ld.cols); }
  std::int64_t k() const { return static_cast<std::int64_t>(d.a == CUBLAS_OP_N ? la.cols : la.rows); }

  /// Why the library would not compute it; empty if it would.
  std::string wrong() const {
    const auto op_rows = [](const auto& l, int op) { return op == CUBLAS_OP_N ? l.rows : l.cols; };
    const auto op_cols = [](const auto& l, int op) { return op == CUBLAS_OP_N ? l.cols : l.rows; };
    if (op_rows(la, d.a) != ld.rows || op_cols(lb, d.b) != ld.cols || op_cols(la, d.a) != op_rows(lb, d.b))
      return "the shapes do not fit";
    if (lc.rows != ld.rows || lc.cols != ld.cols || lc.type != ld.type) return "C does not lie like D";
    for (const auto* l : {&la, &lb, &lc, &ld}) {
      if (l->order != CUBLASLT_ORDER_COL) return "only column order is stood in for";
      if (l->ld < static_cast<std::int64_t>(l->rows)) return "columns are longer than they are apart";
      if (l->batch != ld.batch) return "the numbers of batches differ";
    }
    if (la.type != lb.type) return "A and B have different types";
    const bool wide = la.type == CUDA_R_64F;
    if (wide != (d.compute == CUBLAS_COMPUTE_64F) || wide != (d.scale == CUDA_R_64F) || wide != (ld.type == CUDA_R_64F))
      return "f64 is computed in f64 and nothing else is";
    if (la.type == CUDA_R_32F && ld.type != CUDA_R_32F) return "f32 gives f32";
    if (d.pointer_mode != CUBLASLT_POINTER_MODE_HOST) return "only alpha and beta on the host are stood in for";
    if (has(2)) return "relu is not stood in for";
    if (has(128) && (d.aux_ld < m() || d.aux_ld % 8 != 0))
      return "aux needs columns apart by a multiple of 8, of D's rows or more";
    return "";
  }
  /// A program may ask for what the library has no algorithm for.
  bool has_algorithm() const { return la.type != CUDA_R_64F || d.epilogue == CUBLASLT_EPILOGUE_DEFAULT; }
  /// What is wrong with the pointers, which are needed only when it is computed.
  std::string wrong_pointers() const {
    if ((has(4) || has(16) || has(256) || has(512)) && d.bias == nullptr)
      return "the epilogue needs a pointer to a bias";
    return has(128) && d.aux == nullptr ? "the epilogue needs a pointer to aux" : "";
  }

  std::int32_t aux_type() const { return d.aux_type < 0 ? ld.type : d.aux_type; }
  std::int32_t bias_type() const { return d.bias_type < 0 ? ld.type : d.bias_type; }

  std::vector<Range> ranges(void* workspace, std::size_t bytes) const {
    std::vector<Range> all;
    const auto matrix = [&](const void* p, const auto& l, bool written) {
      const std::size_t width = bytes_of(l.type);
      for (std::int64_t i = 0; i < l.batch; ++i) {
        const auto* first = static_cast<const std::byte*>(p) + static_cast<std::size_t>(i * l.stride) * width;
        all.push_back({first, l.rows * width, written, static_cast<std::size_t>(l.ld) * width, l.cols});
      }
    };
    matrix(a, la, false);
    matrix(b, lb, false);
    matrix(out, ld, true);
    if (beta != 0) matrix(c, lc, false);
    if (has(4)) all.push_back(reads(d.bias, static_cast<std::size_t>(m()) * bytes_of(bias_type())));
    if (has(16) || has(256)) all.push_back(writes(d.bias, static_cast<std::size_t>(m()) * bytes_of(bias_type())));
    if (has(512)) all.push_back(writes(d.bias, static_cast<std::size_t>(n()) * bytes_of(bias_type())));
    if (has(128))
      matrix(d.aux,
             cublasLtMatrixLayoutOpaque_t{static_cast<cudaDataType>(aux_type()), ld.rows, ld.cols, d.aux_ld, 0,
                                          ld.batch, d.aux_stride},
             has(32));
    if (bytes > 0) all.push_back(writes(workspace, bytes));
    return all;
  }

  void operator()() const {
    for (std::int64_t batch = 0; batch < ld.batch; ++batch) {
      const auto value = [&](const void* p, const auto& l, std::int64_t row, std::int64_t col) {
        const double x = load(p, l.type, batch * l.stride + col * l.ld + row);
        return d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && l.type == CUDA_R_32F ? tf32(x) : x;
      };
      const auto at = [&](const void* p, const auto& l, int op, std::int64_t i, std::int64_t j) {
        return op == CUBLAS_OP_N ? value(p, l, i, j) : value(p, l, j, i);
      };
      std::vector<double> bias(static_cast<std::size_t>(std::max(m(), n())));
      std::vector<double> column(static_cast<std::size_t>(k()));
      for (std::int64_t j = 0; j < n(); ++j) {
        for (std::int64_t l = 0; l < k(); ++l) column[static_cast<std::size_t>(l)] = at(b, lb, d.b, l, j);
        for (std::int64_t i = 0; i < m(); ++i) {
          double sum = 0;
          for (std::int64_t l = 0; l < k(); ++l) sum += at(a, la, d.a, i, l) * column[static_cast<std::size_t>(l)];
          double x = alpha * sum;
          if (beta != 0) x += beta * load(c, lc.type, batch * lc.stride + j * lc.ld + i);
          if (has(4)) x += load(d.bias, bias_type(), batch * d.bias_stride + i);
          const std::int64_t aux = batch * d.aux_stride + j * d.aux_ld + i;
          if (has(32) && has(128)) store(d.aux, aux_type(), aux, x);
          if (has(32)) x = gelu(x);
          if (has(64)) x *= gelu_slope(load(d.aux, aux_type(), aux));
          if (has(16)) bias[static_cast<std::size_t>(i)] += x;
          store(out, ld.type, batch * ld.stride + j * ld.ld + i, x);
        }
      }
      const auto store_bias = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          store(d.bias, bias_type(), batch * d.bias_stride + i, bias[static_cast<std::size_t>(i)]);
      };
      if (has(16)) store_bias(m());
      if (has(256)) {
        for (std::int64_t i = 0; i < m(); ++i)
          for (std::int64_t l = 0; l < k(); ++l) bias[static_cast<std::size_t>(i)] += at(a, la, d.a, i, l);
        store_bias(m());
      }
      if (has(512)) {
        for (std::int64_t j = 0; j < n(); ++j)
          for (std::int64_t l = 0; l < k(); ++l) bias[static_cast<std::size_t>(j)] += at(b, lb, d.b, l, j);
        store_bias(n());
      }
    }
  }
};

inline cublasStatus_t refuse_product(const std::string& words, cublasStatus_t status) {
  const auto lock = Gpu::get().lock();
  Gpu::get().fault(current_device, 0, "stand_in: cublasLt: " + words);
  return status;
}

/// Sets a member to what the caller's buffer holds.
template <class T>
cublasStatus_t set(T& member, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof(T))
    return refuse_product("an attribute has " + std::to_string(sizeof(T)) + " bytes, not " + std::to_string(bytes),
                          CUBLAS_STATUS_INVALID_VALUE);
  std::memcpy(&member, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace stand_in

inline std::size_t cublasLtGetVersion() { return 130000; }
inline const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the stand-in";
}
inline const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const cudaError_t error =
      stand_in::call("cublasLtCreate", [](stand_in::Gpu&, stand_in::Gpu::Lock&) { return cudaSuccess; });
  if (error != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                                 std::uint64_t cols, std::int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, cols, ld, CUBLASLT_ORDER_COL, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                       cublasLtMatrixLayoutAttribute_t attribute, const void* from,
                                                       std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return stand_in::set(l->type, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return stand_in::set(l->order, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return stand_in::set(l->rows, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return stand_in::set(l->cols, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD: return stand_in::set(l->ld, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return stand_in::set(l->batch, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return stand_in::set(l->stride, from, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute,
                                               cudaDataType scale) {
  *d = new cublasLtMatmulDescOpaque_t{compute, scale, 0, 0,  0, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0,
                                      nullptr, 0,     0, -1, -1};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete d;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute,
                                                     const void* from, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return stand_in::set(d->compute, from, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return stand_in::set(d->scale, from, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return stand_in::set(d->pointer_mode, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA: return stand_in::set(d->a, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return stand_in::set(d->b, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return stand_in::set(d->epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return stand_in::set(d->bias, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return stand_in::set(d->bias_stride, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return stand_in::set(d->aux, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return stand_in::set(d->aux_ld, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return stand_in::set(d->aux_stride, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return stand_in::set(d->aux_type, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return stand_in::set(d->bias_type, from, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute,
                                                           const void* from, std::size_t bytes) {
  std::uint32_t ignored = 0;
  return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? stand_in::set(preference->workspace, from, bytes)
                                                               : stand_in::set(ignored, from, bytes);
}
/// One algorithm, which takes all the workspace that it may.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                                     cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t preference,
                                                     int requested, cublasLtMatmulHeuristicResult_t results[],
                                                     int* found) {
  *found = 0;
  if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const stand_in::Product product{*d, *a, *b, *c, *out, 1, 0, nullptr, nullptr, nullptr, nullptr};
  if (const std::string words = product.wrong(); !words.empty())
    return stand_in::refuse_product(words, CUBLAS_STATUS_NOT_SUPPORTED);
  if (!product.has_algorithm()) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {
      {{preference->workspace}}, static_cast<std::size_t>(preference->workspace), CUBLAS_STATUS_SUCCESS, 1.0f, {}};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void* alpha, const void* a,
                                     cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb,
                                     const void* beta, const void* c, cublasLtMatrixLayout_t lc, void* out,
                                     cublasLtMatrixLayout_t lout, const cublasLtMatmulAlgo_t* algorithm,
                                     void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const stand_in::Product product{
      *d, *la, *lb, *lc, *lout, stand_in::load(alpha, d->scale, 0), stand_in::load(beta, d->scale, 0), a, b, c, out};
  if (const std::string words = product.wrong(); !words.empty())
    return stand_in::refuse_product(words, CUBLAS_STATUS_NOT_SUPPORTED);
  if (!product.has_algorithm()) return stand_in::refuse_product("f64 has no epilogue", CUBLAS_STATUS_NOT_SUPPORTED);
  if (const std::string words = product.wrong_pointers(); !words.empty())
    return stand_in::refuse_product(words, CUBLAS_STATUS_INVALID_VALUE);
  if (algorithm != nullptr && algorithm->data[0] > workspace_bytes)
    return stand_in::refuse_product("the workspace is smaller than the algorithm's", CUBLAS_STATUS_INVALID_VALUE);
  const cudaError_t error =
      stand_in::enqueue(stream, product, product.ranges(workspace, workspace_bytes), "cublasLtMatmul");
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
