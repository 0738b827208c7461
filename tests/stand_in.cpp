// The stand-in for CUDA, cuBLASLt and NCCL: what it computes, and that mistakes in the order of streams are seen with
// it.
#include <array>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <nccl.h>

namespace {

cudaStream_t stream() {
  cudaStream_t s = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess);
  return s;
}
cudaEvent_t event() {
  cudaEvent_t e = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&e, cudaEventDisableTiming) == cudaSuccess);
  return e;
}
template <class T>
T* device(std::size_t count) {
  T* p = nullptr;
  REQUIRE(cudaMalloc(&p, count * sizeof(T)) == cudaSuccess);
  return p;
}
template <class T>
T* given(const std::vector<T>& values) {
  T* const p = device<T>(values.size());
  REQUIRE(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);  // other streams do not wait for it
  return p;
}
template <class T>
std::vector<T> host(const T* p, std::size_t count) {
  std::vector<T> values(count);
  REQUIRE(cudaMemcpy(values.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}
/// A kernel that adds to one number what another is.
cudaError_t add(float* to, const float* from, cudaStream_t s) {
  return stand_in::enqueue(
      s, [=] { *to += *from; }, {stand_in::reads(from, 4), stand_in::reads(to, 4), stand_in::writes(to, 4)}, "add");
}
bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }
/// The one fault there is.
std::string fault() {
  const auto all = stand_in::faults();
  return all.size() == 1 ? all[0] : std::to_string(all.size()) + " faults";
}

}  // namespace

TEST_CASE("a missing wait gives wrong numbers, for some order, and is found to be a race in every order") {
  for (const bool waits : {true, false}) {
    int wrong = 0, races = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
      stand_in::reset({.seed = seed, .races_are_errors = false});
      const cudaStream_t compute = stream(), other = stream();
      const cudaEvent_t made = event();
      float *a = given<float>({1, 2}), *b = given<float>({10, 20});
      for (int i = 0; i < 3; ++i) add(a, a + 1, compute);  // 7
      cudaEventRecord(made, compute);
      if (waits) cudaStreamWaitEvent(other, made, 0);
      add(b, a, other);  // 17
      cudaDeviceSynchronize();
      wrong += host(b, 1)[0] != 17;
      races += !stand_in::faults().empty();
    }
    CHECK((wrong > 0) == !waits);
    CHECK(races == (waits ? 0 : 40));
  }
}

TEST_CASE("the host sees what it has waited for, and nothing sooner by right") {
  int early = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    stand_in::reset({.seed = seed});
    const cudaStream_t s = stream();
    const cudaEvent_t e = event();
    float* a = given<float>({1, 2});
    float* pinned = nullptr;
    REQUIRE(cudaMallocHost(&pinned, 4) == cudaSuccess);
    *pinned = 0;
    add(a, a + 1, s);
    REQUIRE(cudaMemcpyAsync(pinned, a, 4, cudaMemcpyDeviceToHost, s) == cudaSuccess);
    cudaEventRecord(e, s);
    early += *pinned != 3;
    const cudaError_t state = cudaEventQuery(e);
    CHECK((state == cudaSuccess || state == cudaErrorNotReady));
    if (state == cudaSuccess) CHECK(*pinned == 3);
    REQUIRE(cudaEventSynchronize(e) == cudaSuccess);
    CHECK(*pinned == 3);
    CHECK(cudaEventQuery(e) == cudaSuccess);
    CHECK(stand_in::faults().empty());
    float* pageable = new float(0);
    REQUIRE(cudaMemcpyAsync(pageable, a, 4, cudaMemcpyDeviceToHost, s) == cudaSuccess);  // which waits
    CHECK(*pageable == 3);
    delete pageable;
  }
  CHECK(early > 0);
}

TEST_CASE("memory: what is fresh, where copies go, what there is") {
  stand_in::reset({.devices = 2, .memory = 1 << 20});
  float* a = device<float>(100);
  for (const float x : host(a, 100)) CHECK(x != x);
  CHECK(stand_in::on_device(a, 400));
  CHECK(!stand_in::on_device(a, 401));
  float h[100]{};
  CHECK(cudaMemcpy(h, a, 400, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(contains(fault(), "the destination lies on the host"));
  CHECK(cudaMemcpy(a, h, 404, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(contains(fault(), "the destination is not all of it allocated"));
  CHECK(cudaMemcpy(h, a, 400, cudaMemcpyDefault) == cudaSuccess);
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 1 << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  std::size_t left = 0, total = 0;
  cudaMemGetInfo(&left, &total);
  CHECK(total - left == 400);
  cudaPointerAttributes at{};
  cudaPointerGetAttributes(&at, a);
  CHECK(at.type == cudaMemoryTypeDevice);
  CHECK(at.device == 0);
  cudaPointerGetAttributes(&at, h);
  CHECK(at.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(a) == cudaSuccess);
  CHECK(cudaFree(a) == cudaErrorInvalidValue);
  stand_in::faults();

  // Columns of a matrix, on two streams: they do not touch each other.
  const cudaStream_t one = stream(), two = stream();
  float* matrix = given(std::vector<float>(12, 0.0f));
  const float x[] = {1, 2, 3};
  for (int i = 0; i < 2; ++i)
    CHECK(cudaMemcpy2DAsync(matrix + i, 16, x, 4, 4, 3, cudaMemcpyHostToDevice, i == 0 ? one : two) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(host(matrix, 12) == std::vector<float>{1, 1, 0, 0, 2, 2, 0, 0, 3, 3, 0, 0});
}

TEST_CASE("what stream 0 is given is not there when the call returns") {
  for (const bool set : {true, false})
    for (const bool waits : {true, false}) {
      stand_in::reset({.races_are_errors = false});
      float *a = device<float>(2), h[] = {1, 2};
      CHECK((set ? cudaMemset(a, 0, 8) : cudaMemcpy(a, h, 8, cudaMemcpyHostToDevice)) == cudaSuccess);
      if (waits) CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
      add(a, a + 1, stream());
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
      CHECK(stand_in::faults().empty() == waits);
    }
}

TEST_CASE("what a kernel may not touch ends the program's calls") {
  stand_in::reset({.devices = 2});
  float h = 0;
  const cudaStream_t s = stream();
  SUBCASE("the host's") {
    stand_in::enqueue(s, [] {}, {stand_in::reads(&h, 4)});
  }
  SUBCASE("another device's") {
    cudaSetDevice(1);
    float* there = device<float>(1);
    cudaSetDevice(0);
    stand_in::enqueue(s, [] {}, {stand_in::writes(there, 4)});
  }
  SUBCASE("what was freed") {
    float* a = device<float>(1);
    cudaFree(a);
    stand_in::enqueue(s, [] {}, {stand_in::writes(a, 4)});
  }
  CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(contains(fault(), "a kernel on device 0 touches 4 bytes that "));
}

TEST_CASE("no driver, no device, errors that the test asks for") {
  int count = 7;
  stand_in::reset({.driver = 12020});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  CHECK(count == 0);
  stand_in::reset({.devices = 0});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  stand_in::reset({.devices = 3});
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 3);
  CHECK(cudaSetDevice(3) == cudaErrorInvalidDevice);
  stand_in::inject(cudaErrorECCUncorrectable, "cudaDeviceSynchronize", 2);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorECCUncorrectable);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("a graph is replayed with what was captured: two streams, their order, new numbers each time") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    stand_in::reset({.seed = seed});
    const cudaStream_t compute = stream(), other = stream();
    const cudaEvent_t fork = event(), joined = event();
    float* x = given<float>({1, 10, 100});
    REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    add(x, x + 1, compute);
    cudaEventRecord(fork, compute);
    cudaStreamWaitEvent(other, fork, 0);
    add(x + 1, x, other);
    cudaEventRecord(joined, other);
    cudaStreamWaitEvent(compute, joined, 0);
    add(x + 2, x + 1, compute);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(compute, &graph) == cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(host(x, 3) == std::vector<float>{1, 10, 100});
    for (int i = 0; i < 2; ++i) REQUIRE(cudaGraphLaunch(exec, compute) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(compute) == cudaSuccess);
    CHECK(host(x, 3) == std::vector<float>{32, 53, 174});
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
    CHECK(stand_in::faults().empty());
  }
}

TEST_CASE("what voids a capture") {
  stand_in::reset();
  const cudaStream_t compute = stream(), other = stream();
  const cudaEvent_t e = event(), before = event();
  cudaEventRecord(before, other);
  REQUIRE(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaError_t ends = cudaErrorStreamCaptureInvalidated;
  SUBCASE("the host waits") { CHECK(cudaStreamSynchronize(compute) == cudaErrorStreamCaptureUnsupported); }
  SUBCASE("the host looks at an event of it") {
    cudaEventRecord(e, compute);
    CHECK(cudaEventSynchronize(e) == cudaErrorCapturedEvent);
  }
  SUBCASE("memory is allocated") {
    void* p = nullptr;
    CHECK(cudaMalloc(&p, 8) == cudaErrorStreamCaptureUnsupported);
  }
  SUBCASE("it waits for what is outside") {
    CHECK(cudaStreamWaitEvent(compute, before, 0) == cudaErrorStreamCaptureIsolation);
  }
  SUBCASE("a stream does not join again") {
    cudaEventRecord(e, compute);
    cudaStreamWaitEvent(other, e, 0);
    stand_in::enqueue(other, [] {});
    ends = cudaErrorStreamCaptureUnjoined;
  }
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(compute, &graph) == ends);
  CHECK(graph == nullptr);
  CHECK(!stand_in::faults().empty());
}

TEST_CASE("bf16 rounds to the nearest, halves to even") {
  CHECK(__bfloat162float(__float2bfloat16(1.0f + 0x1p-8f)) == 1.0f);
  CHECK(__bfloat162float(__float2bfloat16(1.0f + 0x1p-7f + 0x1p-8f)) == 1.0f + 0x1p-6f);
  CHECK(__bfloat162float(__float2bfloat16(-3.140625f)) == -3.140625f);
  const float nan = __bfloat162float(__float2bfloat16(std::nanf("")));
  CHECK(nan != nan);
}

TEST_CASE("f16 rounds to the nearest, halves to even") {
  CHECK(__half2float(__float2half(1.0f + 0x1p-11f)) == 1.0f);
  CHECK(__half2float(__float2half(1.0f + 0x1p-10f + 0x1p-11f)) == 1.0f + 0x1p-9f);
  CHECK(__half2float(__float2half(2.0f - 0x1p-12f)) == 2.0f);
  CHECK(__half2float(__float2half(-3.140625f)) == -3.140625f);
  CHECK(__half2float(__float2half(3 * 0x1p-25f)) == 0x1p-23f);
  CHECK(__half2float(__float2half(0x1p-14f - 0x1p-26f)) == 0x1p-14f);
  CHECK(__half2float(__float2half(65519.0f)) == 65504.0f);
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const __half h(__half_raw{static_cast<unsigned short>(bits)});
    if (const float f = __half2float(h); f == f) CHECK(__half_raw(__float2half(f)).x == bits);
  }
  CHECK(std::isinf(__half2float(__float2half(65520.0f))));
  const float nan = __half2float(__float2half(std::nanf("")));
  CHECK(nan != nan);
}

TEST_CASE("products: transposed, scaled, with epilogues and batches") {
  stand_in::reset();
  cublasLtHandle_t handle = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const cudaStream_t s = stream();
  const auto product = [&](const std::vector<float>& a, const std::vector<float>& b, cublasOperation_t ta,
                           cublasOperation_t tb, cublasLtEpilogue_t epilogue, float* bias, float* aux, float beta,
                           std::vector<float> c, int batch = 1) {
    // D is 2 x 3, k is 2.
    cublasLtMatmulDesc_t d = nullptr;
    cublasLtMatrixLayout_t la = nullptr, lb = nullptr, lc = nullptr;
    cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const auto set = [&](cublasLtMatmulDescAttributes_t what, auto value) {
      REQUIRE(cublasLtMatmulDescSetAttribute(d, what, &value, sizeof value) == CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, ta);
    set(CUBLASLT_MATMUL_DESC_TRANSB, tb);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{8});
    cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, 2, 2, 2);
    cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, tb == CUBLAS_OP_N ? 2 : 3, tb == CUBLAS_OP_N ? 3 : 2,
                               tb == CUBLAS_OP_N ? 2 : 3);
    cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, 2, 3, 2);
    const std::int64_t strides[] = {4, 6, 6};
    const cublasLtMatrixLayout_t layouts[] = {la, lb, lc};
    for (int i = 0; i < 3; ++i) {
      const std::int32_t count = batch;
      cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
      cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides[i],
                                       sizeof strides[i]);
    }
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    REQUIRE(cublasLtMatmulAlgoGetHeuristic(handle, d, la, lb, lc, lc, preference, 1, &found, &count) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(count == 1);
    float *pa = given(a), *pb = given(b), *pc = given(c);
    const float alpha = 2;
    REQUIRE(cublasLtMatmul(handle, d, &alpha, pa, la, pb, lb, &beta, pc, lc, pc, lc, &found.algo, nullptr, 0, s) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(cudaStreamSynchronize(s) == cudaSuccess);
    return host(pc, c.size());
  };
  // columns: A = [1 3; 2 4], B = [1 0 1; 0 1 1]
  const std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 0, 1, 1, 1}, none(6);
  using List = std::vector<float>;
  const auto N = CUBLAS_OP_N, T = CUBLAS_OP_T;
  CHECK(product(a, b, N, N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0, none) == List{2, 4, 6, 8, 8, 12});
  CHECK(product(a, b, T, N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0, none) == List{2, 6, 4, 8, 6, 14});
  CHECK(product(a, {1, 0, 1, 0, 1, 1}, N, T, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0, none) ==
        List{2, 4, 6, 8, 8, 12});
  CHECK(product(a, b, N, N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 3, {1, 0, 0, 0, 0, 1}) ==
        List{5, 4, 6, 8, 8, 15});
  float* bias = given<float>({100, 200, 300});
  CHECK(product(a, b, N, N, CUBLASLT_EPILOGUE_BIAS, bias, nullptr, 0, none) == List{102, 204, 106, 208, 108, 212});
  CHECK(product({1, 2, 3, 4, 0, 1, 1, 0}, {1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1}, N, N, CUBLASLT_EPILOGUE_DEFAULT,
                nullptr, nullptr, 0, List(12), 2) == List{2, 4, 6, 8, 8, 12, 0, 2, 2, 0, 2, 2});

  // What gelu was taken of, and its slope there, by differences.
  float* aux = device<float>(24);
  const auto gelu = product({0.1f, -0.2f, 0.3f, 0.4f}, b, N, N, CUBLASLT_EPILOGUE_GELU_AUX, nullptr, aux, 0, none);
  const auto before = host(aux, 24);
  CHECK(before[8] == doctest::Approx(0.6));
  CHECK(gelu[2] == doctest::Approx(0.6 * 0.7257469).epsilon(1e-3));  // 0.6 times the normal distribution at 0.6
  const auto slope =
      product({0.5f, 0, 0, 0.5f}, {1, 1, 1, 1, 1, 1}, N, N, CUBLASLT_EPILOGUE_DGELU_BGRAD, bias, aux, 0, none);
  for (std::size_t i = 0; i < 6; ++i) {
    const double x = static_cast<double>(before[i / 2 * 8 + i % 2]);
    CHECK(static_cast<double>(slope[i]) ==
          doctest::Approx((stand_in::gelu(x + 1e-5) - stand_in::gelu(x - 1e-5)) / 2e-5).epsilon(1e-4));
  }
  CHECK(host(bias, 1)[0] == doctest::Approx(slope[0] + slope[2] + slope[4]));
  product(a, b, N, N, CUBLASLT_EPILOGUE_BGRADB, bias, nullptr, 0, none);
  CHECK(host(bias, 3) == List{1, 1, 2});
  product(a, b, N, N, CUBLASLT_EPILOGUE_BGRADA, bias, nullptr, 0, none);
  CHECK(host(bias, 2) == List{4, 6});
  CHECK(stand_in::faults().empty());
}

namespace {

/// Runs f(rank, communicator, stream) on threads, each with a device.
template <class F>
void ranks(int n, F f) {
  stand_in::reset({.devices = n});
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      cudaSetDevice(r);
      ncclComm_t comm = nullptr;
      CHECK(ncclCommInitRank(&comm, n, id, r) == ncclSuccess);
      cudaStream_t s = nullptr;
      cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
      f(r, comm, s);
    });
  for (auto& t : threads) t.join();
}

}  // namespace

TEST_CASE("collectives and messages of threads") {
  ranks(3, [](int r, ncclComm_t comm, cudaStream_t s) {
    const auto x = static_cast<float>(r + 1);
    float *in = given<float>({x, 10 * x, 100 * x}), *out = device<float>(9);
    const auto got = [&](std::size_t count) {
      CHECK(cudaStreamSynchronize(s) == cudaSuccess);
      return host(out, count);
    };
    using List = std::vector<float>;
    CHECK(ncclAllReduce(in, out, 3, ncclFloat32, ncclSum, comm, s) == ncclSuccess);
    CHECK(got(3) == List{6, 60, 600});
    CHECK(ncclReduceScatter(in, out, 1, ncclFloat32, ncclMax, comm, s) == ncclSuccess);
    CHECK(got(1)[0] == (r == 0 ? 3 : r == 1 ? 30 : 300));
    CHECK(ncclAllGather(in, out, 2, ncclFloat32, comm, s) == ncclSuccess);
    CHECK(got(6) == List{1, 10, 2, 20, 3, 30});
    CHECK(ncclAlltoAll(in, out, 1, ncclFloat32, comm, s) == ncclSuccess);
    const float mine = r == 0 ? 1.0f : r == 1 ? 10.0f : 100.0f;
    CHECK(got(3) == List{mine, 2 * mine, 3 * mine});
    CHECK(ncclBroadcast(in, out, 3, ncclFloat32, 1, comm, s) == ncclSuccess);
    CHECK(got(3) == List{2, 20, 200});
    // A ring, which would stand still if sends and receives were not one group.
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclSend(in, 3, ncclFloat32, (r + 1) % 3, comm, s) == ncclSuccess);
    CHECK(ncclRecv(out, 3, ncclFloat32, (r + 2) % 3, comm, s) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(got(1)[0] == static_cast<float>((r + 2) % 3 + 1));
    // The groups of odd and even ranks, the last first.
    ncclComm_t half = nullptr;
    CHECK(ncclCommSplit(comm, r % 2, -r, &half, nullptr) == ncclSuccess);
    int rank = -1, count = 0;
    ncclCommUserRank(half, &rank);
    ncclCommCount(half, &count);
    CHECK(rank == (r == 0 ? 1 : 0));
    CHECK(count == (r == 1 ? 1 : 2));
    CHECK(ncclCommDestroy(half) == ncclSuccess);
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
  });
  CHECK(stand_in::faults().empty());
}

TEST_CASE("a communicator that does not block") {
  stand_in::reset({.devices = 2});
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::atomic<int> polls = 0;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      cudaSetDevice(r);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      const auto settle = [&](ncclResult_t result) {
        while (result == ncclInProgress) {
          ++polls;
          ncclCommGetAsyncError(comm, &result);
        }
        CHECK(result == ncclSuccess);
      };
      settle(ncclCommInitRankConfig(&comm, 2, id, r, &config));
      cudaStream_t s = nullptr;
      cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
      float* x = given<float>({1});
      for (int i = 0; i < 5; ++i) settle(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, s));
      settle(r == 0 ? ncclSend(x, 1, ncclFloat32, 1, comm, s) : ncclRecv(x, 1, ncclFloat32, 0, comm, s));
      CHECK(cudaStreamSynchronize(s) == cudaSuccess);
      CHECK(host(x, 1)[0] == 32);
      ncclCommDestroy(comm);
    });
  for (auto& t : threads) t.join();
  CHECK(polls > 6);
  CHECK(stand_in::faults().empty());
}

TEST_CASE("a communicator does not end while a graph has calls of it") {
  for (const bool aborted : {false, true})
    ranks(2, [&](int, ncclComm_t blocking, cudaStream_t s) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      CHECK(ncclCommSplit(blocking, 0, 0, &comm, &config) == ncclSuccess);
      float* x = given<float>({1});
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t exec = nullptr;
      CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      CHECK(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, s) == ncclSuccess);
      CHECK(cudaStreamEndCapture(s, &graph) == cudaSuccess);
      CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      std::atomic<bool> ended = false;
      ncclResult_t state = aborted ? ncclSuccess : ncclCommFinalize(comm);
      std::thread end([&] {
        while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
        CHECK((aborted ? ncclCommAbort(comm) : ncclCommDestroy(comm)) == ncclSuccess);
        ended = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK(!ended);
      CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
      end.join();
      CHECK(ncclCommDestroy(blocking) == ncclSuccess);
    });
}

TEST_CASE("ranks that call different collectives, and one that never comes") {
  for (const bool comes : {true, false}) {
    std::array<std::atomic<bool>, 2> over{};
    ranks(2, [&](int r, ncclComm_t comm, cudaStream_t s) {
      float* x = device<float>(4);
      const cudaEvent_t e = event();
      if (comes || r == 0) ncclAllReduce(x, x, r == 0 ? 3 : 4, ncclFloat32, ncclSum, comm, s);
      cudaEventRecord(e, s);
      ncclResult_t state = ncclSuccess;
      for (int i = 0; (comes || i < 50) && state == ncclSuccess; ++i) {
        if (comes || r == 0) CHECK(cudaEventQuery(e) == cudaErrorNotReady);
        ncclCommGetAsyncError(comm, &state);
        std::this_thread::yield();
      }
      over[static_cast<std::size_t>(r)] = true;
      while (!over[static_cast<std::size_t>(1 - r)]) std::this_thread::yield();
      CHECK((state == ncclInvalidUsage) == comes);
      CHECK(ncclCommAbort(comm) == ncclSuccess);
      CHECK(cudaStreamSynchronize(s) == cudaSuccess);  // an abort ends what is on its way
    });
    CHECK(contains(fault(), "ranks of a communicator call different collectives") == comes);
  }
}

TEST_CASE("two ranks on one device are no communicator") {
  stand_in::reset({.devices = 2});
  ncclComm_t comms[2]{};
  const int devices[] = {1, 1};
  CHECK(ncclCommInitAll(comms, 2, devices) == ncclInvalidUsage);
  CHECK(contains(fault(), "are both on device 1"));
}
