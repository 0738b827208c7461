// Element types, and what is known of a tensor before any mesh: element type, layout and kind.
#pragma once
#include <parallel/algebra/layout.hpp>
#include <parallel/meta/bfloat16.hpp>
#include <parallel/meta/float16.hpp>

namespace parallel {

enum class DType : std::uint8_t { f32, f64, bf16, f16, i32 };
constexpr DType last_of(DType) { return DType::i32; }

constexpr int bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::bf16:
    case DType::f16: return 2;
    default: return 4;
  }
}
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    default: return "i32";
  }
}

namespace internals {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::f16;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;
template <class T>
inline constexpr bool is_element_type = requires {
  DTypeOf<T>::value;
};

template <DType dtype>
struct ElementOf;
template <>
struct ElementOf<DType::f32> {
  using type = float;
};
template <>
struct ElementOf<DType::f64> {
  using type = double;
};
template <>
struct ElementOf<DType::i32> {
  using type = int;
};
template <>
struct ElementOf<DType::bf16> {
  using type = bfloat16;
};
template <>
struct ElementOf<DType::f16> {
  using type = float16;
};

/// Whether elements are half a float: stored in two bytes, computed with in float.
constexpr bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }
template <class T>
concept Half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
}  // namespace internals

/// What a value depends on, never whether it is trained: data on no parameter, a parameter on no input, a constant on
/// neither. `refused` is what a refused operation returns and all that is made of it, so that one mistake is one error.
enum class Kind : std::uint8_t { data, parameter, activation, constant, refused };
constexpr Kind last_of(Kind) { return Kind::refused; }

struct Type {
  DType dtype = DType::f32;
  Layout layout{};
  constexpr bool operator==(const Type&) const = default;
};

namespace internals {
/// The element type in which terms are added, and in which parameters and optimizers live: halves are what is
/// multiplied.
constexpr DType precise(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }
}  // namespace internals

constexpr Type conjugate(const Type& type) { return {type.dtype, conjugate(type.layout)}; }

}  // namespace parallel
