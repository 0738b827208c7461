// Element types in memory and in arithmetic: bf16 and f16 are stored in two bytes and computed with in float.
#pragma once
#include <parallel/algebra/type.hpp>
#include <parallel/device/cuda/body/block.hpp>

namespace parallel::internals::cuda {

template <class T>
struct WideOf {
  using type = T;
};
template <Half T>
struct WideOf<T> {
  using type = float;
};
/// What a kernel computes in with elements of type T.
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
PARALLEL_DEVICE Wide<T> widen(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float16>) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
  }
#endif
  return static_cast<Wide<T>>(x);
}
template <class T, class U>
PARALLEL_DEVICE T narrow(U x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float16>) {
    float16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(static_cast<float>(x)));
    return y;
  }
#endif
  if constexpr (Half<T>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// So many elements that are read and written at once: at most 16 bytes.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  static_assert(sizeof(T) * n <= 16);
  T of[n];
};
template <class T>
inline constexpr int pack_elements = static_cast<int>(16 / sizeof(T));

}  // namespace parallel::internals::cuda
