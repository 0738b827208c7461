// Ranks that are threads and share one GPU: every plan can be run where there is one. Each rank has a stream of its
// own, and the host waits at every exchange, so this is for verifying; NCCL is for speed.
#pragma once
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cuda/device.hpp>

namespace parallel::internals {

namespace cuda {

/// outs[j][i] = ((terms[0][i] + terms[1][i]) + ...) or the largest.
template <class T, class Combine>
struct OrderedSum {
  static constexpr int threads = 256, most = 64;
  const T* terms[most];
  T* outs[most];
  int n, copies;
  Index count;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(threads, [&](Index thread) {
      const Index i = block.index * threads + thread;
      if (i >= count) return;
      Wide<T> all = widen(terms[0][i]);
      for (int r = 1; r < n; ++r) all = Combine{}(all, widen(terms[r][i]));
      for (int j = 0; j < copies; ++j) outs[j][i] = narrow<T>(all);
    });
  }
};

/// Of a rank whose exchanges are of a GPU's memory.
class GpuBuffers : public Buffers {
 public:
  explicit GpuBuffers(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  bool of_host() const override { return false; }
  void ready() override { gpu_->finish(); }
  void done() override { gpu_->finish(); }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, gpu_->stream()),
          "an exchange");
  }
  void sum(DType dtype, bool maximum, void* const* outs, int copies, const void* const* terms, int n,
           std::int64_t count, std::int64_t /*past_caches_from*/) override {
    const auto combine = [&]<class T, class Combine>(T, Combine) {
      using Body = OrderedSum<T, Combine>;
      if (n > Body::most)
        throw GpuFailed("at most " + std::to_string(Body::most) + " ranks share one GPU, not " + std::to_string(n) +
                        "; run the others on others, by NCCL");
      Body body{{}, {}, n, copies, count};
      for (int r = 0; r < n; ++r) body.terms[r] = static_cast<const T*>(terms[r]);
      for (int j = 0; j < copies; ++j) body.outs[j] = static_cast<T*>(outs[j]);
      launch(gpu_->stream(), blocks_of(count, Body::threads), body);
    };
    if (dtype == DType::f32) return maximum ? combine(float{}, Larger{}) : combine(float{}, Plus{});
    if (dtype == DType::bf16) return maximum ? combine(bfloat16{}, Larger{}) : combine(bfloat16{}, Plus{});
    if (dtype == DType::f16) return maximum ? combine(float16{}, Larger{}) : combine(float16{}, Plus{});
    if (dtype == DType::f64) return maximum ? combine(double{}, Larger{}) : combine(double{}, Plus{});
    maximum ? combine(std::int32_t{}, Larger{}) : combine(std::uint32_t{}, Plus{});
  }

 private:
  std::shared_ptr<Gpu> gpu_;
};

}  // namespace cuda

/// Called by an executor before its groups are made.
template <class... T>
void attach(Threads& world, const CudaOf<T...>& device) {
  world.buffers(std::make_shared<cuda::GpuBuffers>(device.shared_gpu()));
}

}  // namespace parallel::internals
