// A GPU as a device, without its kernels: they are compiled where <parallel/device/cuda.hpp> is included.
#pragma once
#include <algorithm>
#include <deque>
#include <memory>

#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cuda/body/box.hpp>
#include <parallel/device/cuda/product.hpp>
#include <parallel/device/device.hpp>
#include <parallel/device/kernel_table.hpp>

namespace parallel::internals {

namespace cuda {
struct Scalars;
/// The kernels of the library's own operations whose result has elements of type T.
template <class T>
struct Table {
  static std::span<const KernelRow> kernels();
  static std::span<const FusedRow> fused();
};

/// What a rank's use of a GPU keeps from call to call.
struct Kept {
  explicit Kept(std::shared_ptr<Gpu> g) : gpu(std::move(g)) { contexts.push_back({gpu.get(), nullptr}); }

  std::shared_ptr<Gpu> gpu;
  std::deque<Context> contexts;  ///< the first is of every call but products; deques leave what they hold where it is
  std::deque<PreparedProduct> products;
  GpuMirrored staging;  ///< where inputs are cut to parts
};
}  // namespace cuda

/// The host of a GPU that is to compute everything: nothing is stored there.
template <class Device>
class IdleHost {
 public:
  explicit IdleHost(const Device& device) : device_(device) {}
  using Memory = PinnedMemory;
  static Memory memory(const Device&, std::int64_t bytes) {
    constexpr int unavailable = 69;
    if (bytes > 0)
      throw GpuFailed("the plan stores " + std::to_string(bytes) +
                          " bytes on the host, and Cuda is a GPU alone; run it on CudaAndCpu, which computes there, "
                          "from parallel/device/cuda/host.hpp",
                      unavailable);
    return {};
  }
  const Device& device() const { return device_; }
  void begin_step() {}
  void end_step() {}
  void compute(std::span<const Launch>) {}
  void start(int, void*, const void*, std::int64_t, bool) {}
  void wait(int) {}

 private:
  Device device_;
};
/// GPU `number`, with kernels for programs of these element types, as one rank uses it. Copies are the same: one
/// stream, one memory. `own`: kernels of a program's own operations, which must outlive it; a kernel finds the stream
/// by cuda::gpu(call).stream(). Throws GpuFailed. A rank's executors and parameters must have the same one.
template <class... T>
class CudaOf {
 public:
  static constexpr const DeviceAccount& account = account::on_gpu;
  static constexpr bool asynchronous = true;
  using HostSide = IdleHost<CudaOf>;

  /// The calling thread's: all that it makes so are one.
  CudaOf() : kept_(std::make_shared<cuda::Kept>(Gpu::of_this_thread())) {}
  explicit CudaOf(int number, bool tf32 = false, std::span<const OwnKernels> own = {})
      : own_(own), kept_(std::make_shared<cuda::Kept>(std::make_shared<Gpu>(number, tf32))) {}

  Gpu& gpu() const { return *kept_->gpu; }
  std::shared_ptr<Gpu> shared_gpu() const { return kept_->gpu; }
  Kernel kernel(const Operation& operation, Call& call) const {
    prepare(call);
    const DType wanted = call.results[0].dtype;
    for (const OwnKernels& row : own_) {
      if (row.of(wanted) == nullptr) continue;
      if (row.operation == &operation) return row.of(wanted);
    }
    if (&operation == &operation::matmul && !prepare_product({&call, 1}, cuda::Epilogue::none)) return nullptr;
    return find_kernel<cuda::Table, cuda::Scalars, T...>(operation, call);
  }
  FusedKernel fused(std::span<Call> calls) const {
    for (Call& call : calls) prepare(call);
    if (has_own(own_, calls)) return {};
    if (const cuda::ProductKernel product = cuda::product_kernel(calls); product.kernel)
      return prepare_product(calls, product.epilogue) ? product.kernel : FusedKernel{};
    return find_kernel<cuda::Table, cuda::Scalars, T...>(calls);
  }
  void prepare(Call& call) const { call.context = &kept_->contexts.front(); }

  /// Throws GpuFailed where the GPU has not so many bytes free.
  void need(std::int64_t bytes) const { gpu().need(bytes); }
  GpuMemory memory(std::int64_t bytes) const { return GpuMemory(kept_->gpu, bytes); }
  using Graph = GpuGraph;
  template <class F>
  Graph capture(F f) const {
    return GpuGraph(kept_->gpu, f);
  }
  GpuMirrored mirrored(std::int64_t bytes) const { return GpuMirrored(kept_->gpu, bytes); }

  static void copy(const Call& call) { cuda::copy(call); }
  static void zero(const Call& call) { cuda::zero(call); }
  static void copy_overlap(const Call& call) { cuda::copy_overlap(call); }
  void pack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) const {
    cuda::pack(gpu().stream(), from, to, outer, n, inner, bytes);
  }
  void unpack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) const {
    cuda::pack(gpu().stream(), from, to, n, outer, inner, bytes);
  }
  void take(const View& from, const View& to) const {
    const auto bytes = static_cast<std::int64_t>(to.bytes());
    GpuMirrored& staging = kept_->staging;
    // what it held has been sent
    if (staging.bytes() < bytes) {
      static_cast<void>(staging.host());
      staging = mirrored(bytes);
    }
    View part = to;
    part.data = staging.host();
    cpu::copy_overlap(from, part);
    staging.send(to.data, bytes);
  }
  void read(void* to, const void* from, std::int64_t bytes) const {
    gpu().finish();  // the copy itself would wait too, without an eye on errors and the deadline
    cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, gpu().stream()),
                "numbers of the GPU");
    gpu().finish();
  }
  void finish() const { gpu().finish(); }

 private:
  /// False where an epilogue cannot be, so that it is computed apart. Throws GpuFailed where a product cannot be.
  bool prepare_product(std::span<Call> calls, cuda::Epilogue epilogue) const {
    const cuda::Product wanted = cuda::product_of(calls, epilogue);
    if (wanted.m * wanted.n * wanted.k * wanted.batch == 0) return epilogue == cuda::Epilogue::none;
    // as cuBLASLt wants it
    if (cuda::has_second_matrix(epilogue) && (wanted.n % 8 != 0 || wanted.alignment < 16)) return false;
    auto known = std::find_if(kept_->contexts.begin(), kept_->contexts.end(), [&](const cuda::Context& c) {
      return c.product != nullptr && static_cast<const cuda::Product&>(*c.product) == wanted;
    });
    if (known == kept_->contexts.end()) {
      kept_->contexts.push_back({kept_->gpu.get(), &kept_->products.emplace_back(wanted, gpu())});
      known = std::prev(kept_->contexts.end());
    }
    calls[0].context = &*known;
    if (!*known->product && epilogue == cuda::Epilogue::none)
      throw GpuFailed("cublasLt has no algorithm for a product of " + std::to_string(wanted.m) + " x " +
                      std::to_string(wanted.k) + " and " + std::to_string(wanted.k) + " x " + std::to_string(wanted.n) +
                      " " + std::string(name_of(wanted.dtype)));
    return static_cast<bool>(*known->product);
  }

  std::span<const OwnKernels> own_{};
  std::shared_ptr<cuda::Kept> kept_;
};

/// A GPU for programs in float, bf16 and f16, as most are.
using Cuda = CudaOf<float, bfloat16, float16>;
using CudaDouble = CudaOf<float, bfloat16, float16, double>;
static_assert(Device<Cuda>);

}  // namespace parallel::internals

namespace parallel {
using internals::Cuda;
using internals::CudaDouble;
using internals::CudaOf;
}  // namespace parallel
