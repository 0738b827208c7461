// A GPU as one rank uses it: a stream of computation, the handle of cuBLASLt, memory.
#pragma once
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include <parallel/account/gpu.hpp>
#include <parallel/device/cuda/status.hpp>
#include <parallel/device/host.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals {

/// One rank's use of one GPU. Several may share a GPU. Throws GpuFailed where there is none.
class Gpu {
 public:
  static constexpr std::size_t workspace_bytes = account::gpu::workspace;

  /// `tf32`: products of f32 take the tensor cores, with 10 bits of each factor's fraction.
  explicit Gpu(int number = 0, bool tf32 = false) : number_(number), tf32_(tf32) {
    int gpus = 0;
    const cudaError_t status = cudaGetDeviceCount(&gpus);
    constexpr int unavailable = 69;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver > 0 && status == cudaErrorInsufficientDriver)
      throw GpuFailed("the driver of the GPU is older than the CUDA runtime of this program (" + version() +
                          "); update the driver, or compile with its CUDA",
                      unavailable);
    if (status != cudaSuccess || gpus == 0)
      throw GpuFailed("the program asks for a GPU, but there is none here (" +
                          std::string(driver == 0             ? "no driver"
                                      : status == cudaSuccess ? "no device"
                                                              : cudaGetErrorString(status)) +
                          "); run it where one is, or with Cpu",
                      unavailable);
    if (number < 0 || number >= gpus)
      throw GpuFailed("the program asks for GPU " + std::to_string(number) + ", but there are " + std::to_string(gpus) +
                          " here, counted from 0",
                      unavailable);
    use();
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    cuda::check(cublasLtCreate(&products_), "cublasLt");
    cuda::check(cudaMalloc(&workspace_, workspace_bytes), "memory for matrix products");
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() {
    cudaStreamSynchronize(stream_);
    cudaFree(workspace_);
    cublasLtDestroy(products_);
    cudaStreamDestroy(stream_);
  }

  /// The GPU that the calling thread has chosen, 0 if none, as the thread uses it and as long as somebody holds it.
  static std::shared_ptr<Gpu> of_this_thread() {
    thread_local std::weak_ptr<Gpu> known;
    std::shared_ptr<Gpu> gpu = known.lock();
    int number = 0;
    if (!gpu && cudaGetDevice(&number) != cudaSuccess) number = 0;
    if (!gpu) known = gpu = std::make_shared<Gpu>(number);
    return gpu;
  }

  int number() const { return number_; }
  cudaStream_t stream() const { return stream_; }
  cublasLtHandle_t products() const { return products_; }
  void* workspace() const { return workspace_; }
  bool tf32() const { return tf32_; }
  /// Makes this GPU the one that the calling thread speaks to.
  void use() const { cuda::check(cudaSetDevice(number_), "a GPU could not be chosen"); }
  /// Throws GpuFailed where not so many bytes are free.
  void need(std::int64_t bytes) const {
    use();
    std::size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "the GPU's memory");
    if (static_cast<std::int64_t>(free) < bytes) refuse(bytes);
  }
  [[noreturn]] void refuse(std::int64_t bytes) const {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw GpuFailed("the plan needs " + std::to_string(bytes) + " bytes more, but GPU " + std::to_string(number_) +
                    " has " + std::to_string(free) + " of " + std::to_string(total) +
                    " free; use smaller micro-batches, recompute, or more ranks");
  }
  void finish() const {
    cudaError_t state = cudaErrorNotReady;
    if (waits_) waits_([&] { return (state = cudaStreamQuery(stream_)) != cudaErrorNotReady; });
    cuda::check(waits_ ? state : cudaStreamSynchronize(stream_), "the GPU's work failed");
  }
  /// Until the GPU has reached an event.
  void wait(cudaEvent_t event) const {
    cudaError_t state = cudaErrorNotReady;
    if (waits_) waits_([&] { return (state = cudaEventQuery(event)) != cudaErrorNotReady; });
    cuda::check(waits_ ? state : cudaEventSynchronize(event), "the GPU's work failed");
  }
  /// From now on this is who waits, until what it is given says yes: where exchanges with other ranks may never end, it
  /// throws.
  using Waits = std::function<void(const std::function<bool()>&)>;
  void waits_by(Waits who) { waits_ = std::move(who); }

 private:
  static std::string version() {
    int runtime = 0, driver = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    const auto text = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    return "the program's is " + text(runtime) + ", the driver's " + text(driver);
  }

  int number_;
  bool tf32_;
  Waits waits_{};
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t products_ = nullptr;
  void* workspace_ = nullptr;
};

namespace cuda {
class PreparedProduct;
/// What a call's context is: the GPU, and of a matrix product how cuBLASLt computes it.
struct Context {
  Gpu* gpu = nullptr;
  const PreparedProduct* product = nullptr;
};
inline Gpu& gpu(const Call& call) { return *static_cast<const Context*>(call.context)->gpu; }
inline const PreparedProduct* product(const Call& call) { return static_cast<const Context*>(call.context)->product; }
}  // namespace cuda

/// A block of a GPU's memory, zero at first.
class GpuMemory {
 public:
  GpuMemory() = default;
  explicit GpuMemory(std::int64_t bytes) : GpuMemory(Gpu::of_this_thread(), bytes) {}
  GpuMemory(std::shared_ptr<Gpu> gpu, std::int64_t bytes) : gpu_(std::move(gpu)), bytes_(bytes) {
    if (bytes <= 0) return;
    gpu_->use();
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, static_cast<std::size_t>(bytes));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is answered here
      gpu_->refuse(bytes);
    }
    check(status);
    data_.reset(static_cast<std::byte*>(data));
    check(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), gpu_->stream()));
    gpu_->finish();
  }
  std::byte* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

  /// Calls f(host) with a copy of bytes [offset, offset + bytes), and writes back what it leaves.
  template <class F>
  void change(std::int64_t offset, std::int64_t bytes, F f) {
    copied(offset, bytes, [&](std::byte* host) {
      f(host);
      check(cudaMemcpyAsync(data() + offset, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                            gpu_->stream()));
      gpu_->finish();
    });
  }
  template <class F>
  void look(std::int64_t offset, std::int64_t bytes, F f) const {
    copied(offset, bytes, [&](const std::byte* host) { f(host); });
  }

 private:
  static void check(cudaError_t status) { cuda::check(status, "memory of the GPU"); }
  template <class F>
  void copied(std::int64_t offset, std::int64_t bytes, F f) const {
    if (bytes <= 0) return;
    const auto host = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
    gpu_->finish();
    check(cudaMemcpyAsync(host.get(), data() + offset, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                          gpu_->stream()));
    gpu_->finish();
    f(host.get());
  }
  struct Free {
    void operator()(std::byte* p) const { cudaFree(p); }
  };

  std::shared_ptr<Gpu> gpu_{};
  std::unique_ptr<std::byte, Free> data_{};
  std::int64_t bytes_ = 0;
};

/// Numbers that the host writes and kernels read, when they have been sent.
class GpuMirrored {
 public:
  GpuMirrored() = default;
  GpuMirrored(const std::shared_ptr<Gpu>& gpu, std::int64_t bytes)
      : gpu_(gpu), device_(gpu, bytes), bytes_(static_cast<std::size_t>(bytes)) {
    if (bytes <= 0) return;
    void* host = nullptr;
    cuda::check(cudaMallocHost(&host, bytes_), "memory of the host for the GPU");
    host_.reset(static_cast<std::byte*>(host));
    std::memset(host, 0, bytes_);
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
    sent_.reset(event);
  }
  /// To be written: waits until what was sent last has been read.
  std::byte* host() const {
    if (sent_) gpu_->wait(sent_.get());
    return host_.get();
  }
  std::byte* data() const { return device_.data(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }
  /// What the host has written is what kernels read that are asked for from now on.
  void send() { send(data(), bytes()); }
  /// The first so many bytes to another place.
  void send(void* to, std::int64_t bytes) {
    if (bytes == 0) return;
    cuda::check(
        cudaMemcpyAsync(to, host_.get(), static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, gpu_->stream()),
        "numbers for the GPU");
    cuda::check(cudaEventRecord(sent_.get(), gpu_->stream()), "numbers for the GPU");
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { cudaFreeHost(p); }
  };
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  std::shared_ptr<Gpu> gpu_{};
  GpuMemory device_{};
  std::unique_ptr<std::byte, Free> host_{};
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> sent_{};
  std::size_t bytes_ = 0;
};

/// A block of the host's memory that the GPU copies from and to, zero at first.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::int64_t bytes) : PinnedMemory(Gpu::of_this_thread(), bytes) {}
  PinnedMemory(std::shared_ptr<Gpu> gpu, std::int64_t bytes) : gpu_(std::move(gpu)), bytes_(bytes) {
    if (bytes <= 0) return;
    gpu_->use();
    void* data = nullptr;
    if (cudaMallocHost(&data, static_cast<std::size_t>(bytes)) != cudaSuccess) {
      cudaGetLastError();  // it is answered here
      constexpr int unavailable = 69;
      throw GpuFailed("the plan stores " + std::to_string(bytes) +
                          " bytes on the host, which has not so many for its GPU; use more ranks, or store less there",
                      unavailable);
    }
    data_.reset(static_cast<std::byte*>(data));
    std::memset(data, 0, static_cast<std::size_t>(bytes));
  }
  std::byte* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

  /// Calls f(host) where bytes [offset, offset + bytes) can be read and written, when all before is done.
  template <class F>
  void change(std::int64_t offset, std::int64_t, F f) {
    gpu_->finish();
    f(data() + offset);
  }
  template <class F>
  void look(std::int64_t offset, std::int64_t, F f) const {
    gpu_->finish();
    f(static_cast<const std::byte*>(data() + offset));
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { cudaFreeHost(p); }
  };
  std::shared_ptr<Gpu> gpu_{};
  std::unique_ptr<std::byte, Free> data_{};
  std::int64_t bytes_ = 0;
};
template <>
struct BesideOf<GpuMemory> {
  using type = PinnedMemory;
};

/// What a stream was asked for in one go, to be asked for again by one call.
class GpuGraph {
 public:
  GpuGraph() = default;
  /// Calls f(), which asks the stream, and streams that join it by events, for work and waits for none. Throws
  /// GpuFailed.
  template <class F>
  GpuGraph(std::shared_ptr<Gpu> gpu, F f) : gpu_(std::move(gpu)) {
    check(cudaStreamBeginCapture(gpu_->stream(), cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      f();
    } catch (...) {
      cudaStreamEndCapture(gpu_->stream(), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();  // what the exception says is no error of a later kernel's start
      throw;
    }
    check(cudaStreamEndCapture(gpu_->stream(), &graph));
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check(status);
    executable_.reset(executable);
  }
  explicit operator bool() const { return executable_ != nullptr; }
  void launch() const { cuda::check(cudaGraphLaunch(executable_.get(), gpu_->stream()), "a captured step"); }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess) cudaGetLastError();
    cuda::check(status,
                "a step cannot be captured as a graph (a communicator whose host waits within it cannot take part)");
  }
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  std::shared_ptr<Gpu> gpu_{};
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> executable_{};
};

}  // namespace parallel::internals
