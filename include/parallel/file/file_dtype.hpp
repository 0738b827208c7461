// Element types of files, more than programs compute in.
#pragma once
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <parallel/meta/bfloat16.hpp>
#include <parallel/meta/float16.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel {

/// Called as safetensors calls them, and in its order: a file has the largest first.
enum class FileDType : std::uint8_t {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};
constexpr FileDType last_of(FileDType) { return FileDType::U64; }

constexpr std::string_view name_of(FileDType dtype) {
  constexpr std::string_view names[] = {
      "BOOL", "F4",  "F6_E2M3", "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
      "I16",  "U16", "F16",     "BF16",    "I32", "U32", "F32",     "C64",     "F64",     "I64",         "U64"};
  return names[static_cast<int>(dtype)];
}
constexpr int bits_of(FileDType dtype) {
  switch (dtype) {
    case FileDType::F4: return 4;
    case FileDType::F6_E2M3:
    case FileDType::F6_E3M2: return 6;
    case FileDType::I16:
    case FileDType::U16:
    case FileDType::F16:
    case FileDType::BF16: return 16;
    case FileDType::I32:
    case FileDType::U32:
    case FileDType::F32: return 32;
    case FileDType::C64:
    case FileDType::F64:
    case FileDType::I64:
    case FileDType::U64: return 64;
    default: return 8;
  }
}

namespace internals {

constexpr std::optional<FileDType> file_dtype_named(std::string_view name) {
  for (int d = 0; d <= static_cast<int>(last_of(FileDType{})); ++d)
    if (name_of(static_cast<FileDType>(d)) == name) return static_cast<FileDType>(d);
  return std::nullopt;
}

/// The type of a file whose elements are C++'s Ts. Bytes that are no bool of C++, as a file may have, would be
/// undefined, so BOOL is read as std::uint8_t, and in files of one's own std::uint8_t is U8.
template <class T>
constexpr FileDType find_file_dtype() {
  // clang-format off
  if constexpr (std::is_same_v<T, float>) return FileDType::F32;
  else if constexpr (std::is_same_v<T, double>) return FileDType::F64;
  else if constexpr (std::is_same_v<T, float16>) return FileDType::F16;
  else if constexpr (std::is_same_v<T, bfloat16>) return FileDType::BF16;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return FileDType::C64;
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr bool has_sign = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1: return has_sign ? FileDType::I8 : FileDType::U8;
      case 2: return has_sign ? FileDType::I16 : FileDType::U16;
      case 4: return has_sign ? FileDType::I32 : FileDType::U32;
      default: return has_sign ? FileDType::I64 : FileDType::U64;
    }
  }
  // clang-format on
  else {
    static_assert(!std::is_same_v<T, T>,
                  "parallel: files have elements of float, double, float16, bfloat16, std::complex<float> and whole "
                  "numbers; ask for one of these, or for bytes");
    return FileDType::U8;
  }
}
template <class T>
inline constexpr FileDType file_dtype_of = find_file_dtype<T>();
template <class T>
constexpr bool holds(FileDType dtype) {
  return dtype == file_dtype_of<T> || (std::is_same_v<T, std::uint8_t> && dtype == FileDType::BOOL);
}

/// The elements of a shape, none where they cannot be counted.
inline std::optional<std::int64_t> elements_of(std::span<const std::int64_t> shape) {
  std::int64_t all = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(all, size, &all)) return std::nullopt;
  return all;
}
/// The bytes of so many elements; none where they are too many, or do not fill their last byte.
inline std::optional<std::int64_t> bytes_of(FileDType dtype, std::int64_t elements) {
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(elements, std::int64_t{bits_of(dtype)}, &bits) || bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

}  // namespace internals

}  // namespace parallel
