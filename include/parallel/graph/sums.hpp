// In which element types a program's sums are taken, where they are not as precise as can be.
#pragma once
#include <parallel/algebra/type.hpp>

namespace parallel {

namespace internals {
struct Sums {
  DType activations = DType::f32;  ///< over ranks, of what is half of it
  DType reduced = DType::f32;      ///< of parameters' gradients, over ranks; of double it is double
  DType accumulated = DType::f32;  ///< of parameters' gradients, over micro-batches and layers; of double it is double
  int words[3]{};                  ///< how often each is said
  bool fits = true;                ///< of types that can be

  /// Whether a parameter's gradient is left as it has been added up, and not cast to what its parameter is kept in.
  constexpr bool keeps_gradients() const { return is_half(reduced) || is_half(accumulated); }

  template <class T>
  constexpr void take(DType Sums::*which, int word) {
    ++words[word];
    if constexpr (Half<T> || std::is_same_v<T, float>)
      this->*which = dtype_of<T>;
    else
      fits = false;
  }
  template <class Word>
  constexpr void hear() {
    if constexpr (requires { Word::of(*this); })
      Word::of(*this);
    else
      fits = false;
  }
  constexpr bool sound(bool trained) const {
    return fits && words[0] <= 1 && words[1] <= (trained ? 1 : 0) && words[2] <= (trained ? 1 : 0);
  }
};
}  // namespace internals

// Words of `SumsIn`. T: float, bfloat16 or float16.

/// In which type hidden states and their gradients are added over ranks, and so travel, where they are half of a float:
/// tensor and sequence parallelism.
template <class T>
struct Activations {
  static constexpr void of(internals::Sums& s) { s.take<T>(&internals::Sums::activations, 0); }
};
/// In which type gradients of parameters are added over ranks, and so travel, and are kept for the optimizer: data
/// parallelism, ZeRO.
template <class T>
struct Reduced {
  static constexpr void of(internals::Sums& s) { s.take<T>(&internals::Sums::reduced, 1); }
};
/// In which type gradients of parameters are kept while micro-batches add up.
template <class T>
struct Accumulated {
  static constexpr void of(internals::Sums& s) { s.take<T>(&internals::Sums::accumulated, 2); }
};

}  // namespace parallel
