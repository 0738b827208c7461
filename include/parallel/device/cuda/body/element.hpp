// Element types in memory and in arithmetic: bf16 is stored in two bytes and computed with in float.
#pragma once
#include <parallel/algebra/type.hpp>
#include <parallel/device/cuda/body/block.hpp>

namespace parallel::internals::cuda {

template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<bfloat16> {
  using type = float;
};
/// What a kernel computes in with elements of type T.
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
PARALLEL_DEVICE Wide<T> widen(T x) {
  return static_cast<Wide<T>>(x);
}
template <class T, class U>
PARALLEL_DEVICE T narrow(U x) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return bfloat16(static_cast<float>(x));
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
