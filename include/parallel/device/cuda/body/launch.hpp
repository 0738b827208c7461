// How a body becomes a kernel: a grid of blocks on a stream.
#pragma once
#include <parallel/device/cuda/body/block.hpp>
#include <parallel/device/cuda/status.hpp>

#if !defined(__CUDACC__)
#if !defined(PARALLEL_STAND_IN)
#error "kernels for CUDA need its compiler; compile this file with nvcc -x cu -std=c++20 --expt-relaxed-constexpr"
#endif
#include <vector>

namespace stand_in {
/// What the kernels of a call read and write, as a test has said before it, for the search for races.
inline thread_local std::vector<Range> declared;
}  // namespace stand_in
#endif

namespace parallel::internals::cuda {

/// A body is an aggregate of pointers and numbers with `static constexpr int threads` and
///
///     template <class Block> PARALLEL_DEVICE void operator()(Block& block) const;
#if defined(__CUDACC__)
template <class Body>
__global__ void __launch_bounds__(Body::threads) run_blocks(const Body body) {
  extern __shared__ __align__(16) std::byte shared_memory[];
  Block<Body::threads> block(blockIdx.x, shared_memory);
  body(block);
}
/// Lets a kernel have as much shared memory as the GPU gives, where it needs more than it gets unasked. The limit is
/// the kernel's, whoever launches it: ranks that share a GPU ask for the same, so that none takes from another.
template <class Body>
void ask_for_shared_memory(std::size_t bytes) {
  static const std::size_t fixed = [] {  // for sums over a block
    cudaFuncAttributes of_kernel{};
    check(cudaFuncGetAttributes(&of_kernel, run_blocks<Body>), "a kernel");
    return of_kernel.sharedSizeBytes;
  }();
  if (bytes + fixed <= std::size_t{48} << 10) return;
  int gpu = 0, all = 0;
  check(cudaGetDevice(&gpu), "the GPU");
  check(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu), "a GPU's shared memory");
  check(cudaFuncSetAttribute(run_blocks<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             all - static_cast<int>(fixed)),
        "a kernel's shared memory");
}
#endif

/// Asks a stream to run a body in so many blocks, each with `shared` bytes of shared memory.
template <class Body>
void launch(cudaStream_t stream, std::int64_t blocks, const Body& body, std::size_t shared = 0) {
  if (blocks <= 0) return;
#if defined(__CUDACC__)
  if (shared > 0) ask_for_shared_memory<Body>(shared);
  run_blocks<<<static_cast<unsigned>(blocks), Body::threads, shared, stream>>>(body);
  check(cudaGetLastError(), "a kernel could not be started");
#else
  stand_in::enqueue(
      stream,
      [=] {
        std::vector<std::byte> room(shared + 16);
        for (std::int64_t i = 0; i < blocks; ++i) {
          Block<Body::threads> block(i, room.data() + (16 - reinterpret_cast<std::uintptr_t>(room.data()) % 16));
          body(block);
        }
      },
      stand_in::declared);
#endif
}

/// Blocks of so many that hold all.
PARALLEL_DEVICE constexpr std::int64_t blocks_of(std::int64_t all, std::int64_t of_each) {
  return (all + of_each - 1) / of_each;
}

}  // namespace parallel::internals::cuda
