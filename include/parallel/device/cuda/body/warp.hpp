// What the threads of a warp hold together: each has its registers on the device; elsewhere one thread has them all,
// lane by lane.
#pragma once
#include <parallel/device/cuda/body/element.hpp>

namespace parallel::internals::cuda {

inline constexpr int lanes = 32;  ///< of a warp

/// f(lane) for every lane of a warp.
template <class F>
PARALLEL_DEVICE void each_lane(F f) {
#if defined(__CUDA_ARCH__)
  f(static_cast<int>(threadIdx.x % lanes));
#else
  for (int lane = 0; lane < lanes; ++lane) f(lane);
#endif
}

/// f(w) for every warp of a block. What a warp keeps from one call to the next is a PerWarp.
template <int warps, class F>
PARALLEL_DEVICE void in_warps(F f) {
#if defined(__CUDA_ARCH__)
  f(static_cast<int>(threadIdx.x / lanes));
#else
  for (int w = 0; w < warps; ++w) f(w);
#endif
}

/// A value of every lane; on the device a lane has only its own.
template <class T>
struct PerLane {
#if defined(__CUDA_ARCH__)
  T own{};
  PARALLEL_DEVICE T& operator[](int) { return own; }
  PARALLEL_DEVICE const T& operator[](int) const { return own; }
#else
  T all[lanes]{};
  PARALLEL_DEVICE T& operator[](int lane) { return all[lane]; }
  PARALLEL_DEVICE const T& operator[](int lane) const { return all[lane]; }
#endif
};
/// A value of every warp of a block; on the device a warp has only its own.
template <class T, int warps>
struct PerWarp {
#if defined(__CUDA_ARCH__)
  T own{};
  PARALLEL_DEVICE T& operator[](int) { return own; }
#else
  T all[warps]{};
  PARALLEL_DEVICE T& operator[](int warp) { return all[warp]; }
#endif
};

/// Where an element of Elements lies: which lane has it, in which of the 16 x 8 parts, as which of that lane's four
/// elements of the part.
struct Place {
  int lane, i, j, e;
  PARALLEL_DEVICE int row() const { return 16 * i + lane / 4 + e / 2 * 8; }
  PARALLEL_DEVICE int column() const { return 8 * j + lane % 4 * 2 + e % 2; }
};

/// 16 m x 8 n numbers in the registers of a warp, as the tensor cores leave their results ("mma.m16n8k16" in the PTX
/// manual).
template <class W, int m, int n>
struct Elements {
  struct Own {
    W of[m][n][4];
  };
  PerLane<Own> at;

  /// f(place, element) for all.
  template <class F>
  PARALLEL_DEVICE void each(F f) {
    each_lane([&](int lane) {
      PARALLEL_UNROLL
      for (int i = 0; i < m; ++i) PARALLEL_UNROLL
      for (int j = 0; j < n; ++j) PARALLEL_UNROLL
      for (int e = 0; e < 4; ++e) f(Place{lane, i, j, e}, at[lane].of[i][j][e]);
    });
  }
};

/// A number for every row of Elements: the four lanes that share a row have one each.
template <class W, int m>
struct RowValues {
  struct Own {
    W of[m][2];
  };
  PerLane<Own> at;

  PARALLEL_DEVICE W& operator[](const Place& p) { return at[p.lane].of[p.i][p.e / 2]; }
  /// f(place of the row's first element of this lane, number) for all.
  template <class F>
  PARALLEL_DEVICE void each(F f) {
    each_lane([&](int lane) {
      PARALLEL_UNROLL
      for (int i = 0; i < m; ++i) PARALLEL_UNROLL
      for (int half = 0; half < 2; ++half) f(Place{lane, i, 0, 2 * half}, at[lane].of[i][half]);
    });
  }
  /// Gives the four lanes of a row what their numbers make together.
  template <class Combine>
  PARALLEL_DEVICE void combine(Combine combine) {
    PARALLEL_UNROLL
    for (int apart = 1; apart < 4; apart *= 2) {
#if defined(__CUDA_ARCH__)
      each([&](const Place&, W& x) { x = combine(x, __shfl_xor_sync(0xffffffffU, x, apart)); });
#else
      RowValues other = *this;
      each([&](Place p, W& x) {
        p.lane ^= apart;
        x = combine(x, other[p]);
      });
#endif
    }
  }
};

}  // namespace parallel::internals::cuda
