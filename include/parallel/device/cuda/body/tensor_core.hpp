// A warp's tensor cores: 16 x 8 floats += 16 x 16 numbers of bf16 or f16 times 16 x 8. Elsewhere the same numbers in
// the same lanes, by definition ("mma.m16n8k16" and "ldmatrix" in the PTX manual).
#pragma once
#include <bit>

#include <parallel/device/cuda/body/warp.hpp>

namespace parallel::internals::cuda {

/// Neighbours along the dimension that is summed over, the first in the lower half.
template <Half T>
struct alignas(4) Pair {
  T of[2];
};
template <Half T>
PARALLEL_DEVICE Pair<T> pair(float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t both;
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return std::bit_cast<Pair<T>>(both);
#else
  return {{T(first), T(second)}};
#endif
}

/// Four parts of 8 x 8 elements. Lane 4 r + t has elements (r, 2t) and (r, 2t + 1) of a part of a left factor, (2t, r)
/// and (2t + 1, r) of a part of a right one. A left factor's parts are rows 0 to 7 and 8 to 15 of the first eight
/// columns, then of the others; a right one's are two factors of 16 x 8 side by side, the upper eight rows of each
/// before the lower.
template <Half T>
struct Parts {
  Pair<T> of[4];
};
template <Half T>
using Factor = PerLane<Parts<T>>;

/// Reads four parts from shared memory. row(p, r): where line r of part p begins, eight neighbours at a multiple of 16
/// bytes: lines run along the sum, or `across` it.
template <bool across, Half T, class Row>
PARALLEL_DEVICE void load(PerLane<Parts<T>>& to, Row row) {
#if defined(__CUDA_ARCH__)
  const int lane = static_cast<int>(threadIdx.x % lanes);
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row(lane / 8, lane % 8)));
  std::uint32_t a, b, c, d;
  if constexpr (across)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(address)
                 : "memory");
  using Two = Pair<T>;
  to.own = {{std::bit_cast<Two>(a), std::bit_cast<Two>(b), std::bit_cast<Two>(c), std::bit_cast<Two>(d)}};
#else
  each_lane([&](int lane) {
    const int r = lane / 4, t = lane % 4;
    for (int p = 0; p < 4; ++p)
      for (int x = 0; x < 2; ++x) to[lane].of[p].of[x] = across ? row(p, 2 * t + x)[r] : row(p, r)[2 * t + x];
  });
#endif
}

/// Part (i, j) of `sum` += left * the first or the second of the two right factors.
template <Half T, int m, int n>
PARALLEL_DEVICE void multiply_add(Elements<float, m, n>& sum, int i, int j, const PerLane<Parts<T>>& left,
                                  const PerLane<Parts<T>>& right, int which) {
#if defined(__CUDA_ARCH__)
  float(&d)[4] = sum.at.own.of[i][j];
  const auto a = [&](int p) { return std::bit_cast<std::uint32_t>(left.own.of[p]); };
  const auto b = [&](int p) { return std::bit_cast<std::uint32_t>(right.own.of[2 * which + p]); };
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a(0)), "r"(a(1)), "r"(a(2)), "r"(a(3)), "r"(b(0)), "r"(b(1)));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a(0)), "r"(a(1)), "r"(a(2)), "r"(a(3)), "r"(b(0)), "r"(b(1)));
#else
  for (int lane = 0; lane < lanes; ++lane)
    for (int e = 0; e < 4; ++e) {
      const Place place{lane, 0, 0, e};
      float& all = sum.at[lane].of[i][j][e];
      for (int half = 0; half < 2; ++half)
        for (int t = 0; t < 4; ++t) {
          const Pair<T> a = left[place.row() % 8 * 4 + t].of[2 * half + place.row() / 8],
                        b = right[place.column() * 4 + t].of[2 * which + half];
          for (int x = 0; x < 2; ++x) all += widen(a.of[x]) * widen(b.of[x]);
        }
    }
#endif
}

/// Columns [16 k, 16 k + 16) of rows [16 i, 16 i + 16), as a left factor: every element stays in its lane.
template <Half T, int m, int n>
PARALLEL_DEVICE Factor<T> left_factor(const Elements<float, m, n>& from, int i, int k) {
  Factor<T> left;
  each_lane([&](int lane) {
    PARALLEL_UNROLL
    for (int p = 0; p < 4; ++p) {
      const float* const two = from.at[lane].of[i][2 * k + p / 2] + p % 2 * 2;
      left[lane].of[p] = pair<T>(two[0], two[1]);
    }
  });
  return left;
}

}  // namespace parallel::internals::cuda
