// A block of threads that computes a row or a tile together. Under nvcc every thread runs a body with a Block of its
// own; elsewhere one thread plays all of them, phase by phase, with the same sums in the same order: so tests on the
// host see the numbers of the device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

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

namespace parallel::internals::cuda {

/// Sums that are made together.
template <class T, int count>
struct Several {
  T of[count]{};
  PARALLEL_DEVICE friend Several operator+(Several a, const Several& b) {
    for (int i = 0; i < count; ++i) a.of[i] += b.of[i];
    return a;
  }
};

struct Plus {
  template <class T>
  PARALLEL_DEVICE T operator()(const T& a, const T& b) const {
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

struct Smaller {
  template <class T>
  PARALLEL_DEVICE T operator()(T a, T b) const {
    return a <= b || a != a ? a : b;
  }
};

/// Adds to what several threads add to: whole numbers only, whose sum no order shows in.
template <class T>
requires std::is_integral_v<T> PARALLEL_DEVICE void add_to(T& sum, T term) {
#if defined(__CUDA_ARCH__)
  atomicAdd(&sum, term);
#else
  sum += term;
#endif
}

/// What is combined by a warp in a tree, the same for every order of its lanes: 16 apart, then 8, down to neighbours.
#if defined(__CUDACC__)
template <class T>
__device__ T of_lane(const T& own, int apart) {
  return __shfl_xor_sync(0xffffffffU, own, apart);
}
template <class T, int count>
__device__ Several<T, count> of_lane(Several<T, count> own, int apart) {
  for (T& each : own.of) each = of_lane(each, apart);
  return own;
}
#endif
template <class T, class Combine>
T combined_lanes(T (&own)[32], Combine combine) {
  T other[32];
  for (int apart = 16; apart > 0; apart /= 2) {
    for (int lane = 0; lane < 32; ++lane) other[lane] = own[lane ^ apart];
    for (int lane = 0; lane < 32; ++lane) own[lane] = combine(own[lane], other[lane]);
  }
  return own[0];
}

/// What a body is called with. A body is uniform but within `each`: its own variables have the same value in every
/// thread, and only the functions that it hands to a Block see what differs, an index. A warp that works alone is a
/// Block, too.
template <int size>
class Block {
 public:
  static constexpr int threads = size, warp = 32, warps = size / warp;
  static_assert(size % warp == 0 && size <= 1024);
  PARALLEL_DEVICE Block(std::int64_t i, std::byte* room) : index(i), shared_(room) {}

  std::int64_t index;  ///< of the block, or the warp, in the grid

  /// f(i) for every i below n, in no order. What it writes, others see behind `sync`. `ahead`, here and below: for how
  /// many i a thread loads before it waits.
  template <int ahead = 1, class I, class F>
  PARALLEL_DEVICE void each(I n, F f) const {
#if defined(__CUDA_ARCH__)
#pragma unroll ahead
    for (I i = static_cast<I>(thread()); i < n; i += size) f(i);
#else
    for (I i = 0; i < n; ++i) f(i);
#endif
  }
  /// f(warp) for every warp, each of which works alone, with so many bytes of the shared memory.
  template <class F>
  PARALLEL_DEVICE void each_warp(F f, std::size_t bytes = 0) const {
    const auto run = [&](int w) { f(Block<warp>(index * warps + w, shared_ + static_cast<std::size_t>(w) * bytes)); };
#if defined(__CUDA_ARCH__)
    run(static_cast<int>(threadIdx.x) / warp);
#else
    for (int w = 0; w < warps; ++w) run(w);
#endif
  }
  PARALLEL_DEVICE void sync() const {
#if defined(__CUDA_ARCH__)
    size == warp ? __syncwarp() : __syncthreads();
#endif
  }
  /// The sum of f(i) over all i below n, the same bits in every thread and every run: each thread adds every size-th,
  /// then they are combined in a tree. What was written before, others see behind it.
  template <class T, int ahead = 1, class F>
  PARALLEL_DEVICE T sum(std::int64_t n, F f) const {
    return combined<T, ahead>(n, f, T{}, Plus{});
  }
  /// The largest, at least `least`.
  template <int ahead = 1, class T, class F>
  PARALLEL_DEVICE T maximum(std::int64_t n, T least, F f) const {
    return combined<T, ahead>(n, f, least, Larger{});
  }
  /// Memory of the block, `bytes` behind its begin, as much as the launch asked for; a multiple of 16.
  template <class T>
  PARALLEL_DEVICE T* shared(std::size_t bytes = 0) const {
    return reinterpret_cast<T*>(shared_ + bytes);
  }

 private:
  template <class T, int ahead, class F, class Combine>
  PARALLEL_DEVICE T combined(std::int64_t n, F f, T first, Combine combine) const {
#if defined(__CUDA_ARCH__)
    T own = first;
#pragma unroll ahead
    for (std::int64_t i = thread(); i < n; i += size) own = combine(own, static_cast<T>(f(i)));
    for (int apart = warp / 2; apart > 0; apart /= 2) own = combine(own, of_lane(own, apart));
    if constexpr (warps == 1) {
      return own;
    } else {
      __shared__ alignas(16) std::byte room[warps * sizeof(T)];
      T* const of_warp = reinterpret_cast<T*>(room);
      __syncthreads();  // the sum before this one has been read
      if (threadIdx.x % warp == 0) of_warp[threadIdx.x / warp] = own;
      __syncthreads();
      T all = of_warp[0];
      for (int w = 1; w < warps; ++w) all = combine(all, of_warp[w]);
      return all;
    }
#else
    T own[warp], all{};
    for (int w = 0; w < warps; ++w) {
      for (int lane = 0; lane < warp; ++lane) {
        own[lane] = first;
        for (std::int64_t i = w * warp + lane; i < n; i += size) own[lane] = combine(own[lane], static_cast<T>(f(i)));
      }
      all = w == 0 ? combined_lanes(own, combine) : combine(all, combined_lanes(own, combine));
    }
    return all;
#endif
  }

#if defined(__CUDA_ARCH__)
  __device__ static unsigned thread() { return warps == 1 ? threadIdx.x % warp : threadIdx.x; }
#endif

  std::byte* shared_;
};
using Warp = Block<32>;

}  // namespace parallel::internals::cuda
