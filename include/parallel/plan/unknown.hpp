// The answer where a program or a question is refused: it passes every assertion, so that one mistake stays one error.
#pragma once
#include <type_traits>

namespace parallel::internals {

/// Compares true with everything and stays itself under arithmetic.
struct Unknown {
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr operator T() const { return T{1}; }
  friend constexpr bool operator==(Unknown, const auto&) { return true; }
  friend constexpr bool operator!=(Unknown, const auto&) { return true; }
  friend constexpr bool operator<(Unknown, const auto&) { return true; }
  friend constexpr bool operator<=(Unknown, const auto&) { return true; }
  friend constexpr bool operator>(Unknown, const auto&) { return true; }
  friend constexpr bool operator>=(Unknown, const auto&) { return true; }
  friend constexpr Unknown operator+(Unknown, const auto&) { return {}; }
  friend constexpr Unknown operator-(Unknown, const auto&) { return {}; }
  friend constexpr Unknown operator*(Unknown, const auto&) { return {}; }
  friend constexpr Unknown operator/(Unknown, const auto&) { return {}; }
};

}  // namespace parallel::internals
