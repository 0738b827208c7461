// Numbers as the formats of this room have them: little endian, aligned or not.
#pragma once
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace parallel::internals {

/// So they are read and written as they lie in memory.
static_assert(std::endian::native == std::endian::little, "parallel/file: the machine must be little endian");

/// The number that begins at a place. The caller has checked that it is within the bytes.
template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number result;
  std::memcpy(&result, bytes.data() + at, sizeof result);
  return result;
}
/// The bytes of numbers, one behind the other, each as wide as its type.
template <class... Number>
std::string little_endian(const Number&... numbers) {
  static_assert((std::is_trivially_copyable_v<Number> && ...));
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

}  // namespace parallel::internals
