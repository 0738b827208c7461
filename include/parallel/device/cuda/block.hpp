// A block of threads that computes a row or a tile together. Under nvcc every thread runs a body with a Block of its own; elsewhere one thread
// plays all of them, phase by phase, with the same sums in the same order: so tests on the host see the numbers of the device.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define PARALLEL_DEVICE __host__ __device__
#else
#define PARALLEL_DEVICE
#endif
#if defined(__CUDA_ARCH__)
#define PARALLEL_UNROLL _Pragma("unroll")
#define PARALLEL_LOOP _Pragma("unroll 1")
#else
#define PARALLEL_UNROLL
#define PARALLEL_LOOP
#endif

namespace parallel::cuda {

struct Plus {
  template <class T>
  PARALLEL_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// NaN if either is.
struct Larger {
  template <class T>
  PARALLEL_DEVICE T operator()(T a, T b) const {
    return a >= b || a != a ? a : b;
  }
};

/// What a body is called with. A body is uniform but within `each`: its own variables have the same value in every thread, and only the
/// functions that it hands to a Block see what differs, an index.
template <int size>
class Block {
 public:
  static constexpr int threads = size, warp = 32;
  static_assert(size % warp == 0 && size <= 1024);
  PARALLEL_DEVICE Block(std::int64_t i, std::byte* room) : index(i), shared_(room) {}

  std::int64_t index;  ///< of the block in the grid

  /// f(i) for every i below n, in no order. What it writes, others see behind `sync`.
  template <class F>
  PARALLEL_DEVICE void each(std::int64_t n, F f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = threadIdx.x; i < n; i += size) f(i);
#else
    for (std::int64_t i = 0; i < n; ++i) f(i);
#endif
  }
  /// f(w) for every warp. What a warp keeps from one call to the next is a PerWarp (warp.hpp).
  template <class F>
  PARALLEL_DEVICE void each_warp(F f) const {
#if defined(__CUDA_ARCH__)
    f(static_cast<int>(threadIdx.x / warp));
#else
    for (int w = 0; w < size / warp; ++w) f(w);
#endif
  }
  PARALLEL_DEVICE void sync() const {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }
  /// The sum of f(i) over all i below n, the same bits in every thread and every run: each thread adds every size-th, then they are combined in
  /// a tree. What was written before, others see behind it.
  template <class T, class F>
  PARALLEL_DEVICE T sum(std::int64_t n, F f) const {
    return combined<T>(n, f, T{}, Plus{});
  }
  /// The largest, at least `least`.
  template <class T, class F>
  PARALLEL_DEVICE T maximum(std::int64_t n, T least, F f) const {
    return combined<T>(n, f, least, Larger{});
  }
  /// Memory of the block, `bytes` behind its begin, as much as the launch asked for; a multiple of 16.
  template <class T>
  PARALLEL_DEVICE T* shared(std::size_t bytes = 0) const {
    return reinterpret_cast<T*>(shared_ + bytes);
  }

 private:
  template <class T, class F, class Combine>
  PARALLEL_DEVICE T combined(std::int64_t n, F f, T first, Combine combine) const {
    constexpr int warps = size / warp;
#if defined(__CUDA_ARCH__)
    T own = first;
    for (std::int64_t i = threadIdx.x; i < n; i += size) own = combine(own, static_cast<T>(f(i)));
    for (int apart = warp / 2; apart > 0; apart /= 2) own = combine(own, __shfl_xor_sync(0xffffffffU, own, apart));
    __shared__ T of_warp[warps];
    __syncthreads();  // the sum before this one has been read
    if (threadIdx.x % warp == 0) of_warp[threadIdx.x / warp] = own;
    __syncthreads();
    T all = of_warp[0];
    for (int w = 1; w < warps; ++w) all = combine(all, of_warp[w]);
    return all;
#else
    T own[size], other[size], all{};
    for (int t = 0; t < size; ++t) {
      own[t] = first;
      for (std::int64_t i = t; i < n; i += size) own[t] = combine(own[t], static_cast<T>(f(i)));
    }
    for (int apart = warp / 2; apart > 0; apart /= 2) {
      for (int t = 0; t < size; ++t) other[t] = own[t ^ apart];
      for (int t = 0; t < size; ++t) own[t] = combine(own[t], other[t]);
    }
    for (int w = 0; w < warps; ++w) all = w == 0 ? own[0] : combine(all, own[w * warp]);
    return all;
#endif
  }

  std::byte* shared_;
};

}  // namespace parallel::cuda
