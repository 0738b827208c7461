// Several bodies of one type as one kernel, each with the blocks that it would have alone: a launch costs more than a
// small tensor's work.
#pragma once
#include <algorithm>

#include <parallel/device/cuda/body/launch.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals::cuda {

/// A body of bodies; they lie in the kernel's parameters, so that neither device nor host keeps anything.
/// `Body::shared_bytes`: of each block.
template <class Body>
class Bodies {
 public:
  static constexpr int threads = Body::threads, parameter_bytes = 4096;  // of a kernel
  static constexpr int most = (parameter_bytes - 8) / static_cast<int>(sizeof(Body) + sizeof(std::int64_t));

  /// Launches those that are there first, if there is no room for one more.
  void add(cudaStream_t stream, const Body& body, std::int64_t blocks) {
    if (count_ == most) launch(stream);
    bodies_[count_] = body;
    ends_[count_] = blocks_before(count_) + blocks;
    ++count_;
  }
  void launch(cudaStream_t stream) {
    cuda::launch(stream, blocks_before(count_), *this, Body::shared_bytes);
    count_ = 0;
  }

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    int i = 0;
    while (block.index >= ends_[i]) ++i;
    Block own = block;
    own.index -= blocks_before(i);
    bodies_[i](own);
  }

 private:
  PARALLEL_DEVICE std::int64_t blocks_before(int i) const { return i == 0 ? 0 : ends_[i - 1]; }

  Body bodies_[most]{};
  std::int64_t ends_[most]{};  // the first block behind each
  int count_ = 0;
};

/// Calls f(some) for calls in their order, so many at a time.
template <class F>
void at_most(int most, std::span<const Call> calls, F f) {
  while (!calls.empty()) {
    const std::size_t some = std::min(calls.size(), static_cast<std::size_t>(most));
    f(calls.first(some));
    calls = calls.subspan(some);
  }
}

}  // namespace parallel::internals::cuda
