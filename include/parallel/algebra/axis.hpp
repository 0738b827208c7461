// A named axis of a mesh. It is an object with linkage: a type holds its address, and every compiler prints its name.
#pragma once
#include <string_view>
#include <type_traits>

namespace parallel {

struct Axis;

namespace internals {
/// A fraction where an extent, or how many ranks an axis has, is a whole number.
template <class Instead>
constexpr void no_whole_number() {
  static_assert(
      sizeof(Instead) > 99,
      "parallel: an extent, or how many ranks an axis has, is a floating point number, which would be cut off; "
      "compute it in whole numbers, Shape<16, 8 * 96 / 3 / tensor>, or say how it is rounded, "
      "static_cast<int>(8.0 / 3 * 96)");
}
}  // namespace internals

/// `data = 2`: an axis and how many ranks it has.
struct Extent {
  const Axis* axis = nullptr;
  int size = 1;
  constexpr Extent() = default;
  constexpr Extent(const Axis* a, int n) : axis(a), size(n) {}
  constexpr bool operator==(const Extent&) const = default;
};

/// `inline constexpr Axis rows{"rows"};` makes an axis of one's own.
struct Axis {
  const char* name;  ///< of any length; it outlives the axis
  constexpr explicit Axis(const char* n) : name(n) {}
  constexpr Extent operator=(int size) const { return {this, size}; }
  template <class Fraction>
  requires(std::is_floating_point_v<Fraction>) constexpr Extent operator=(Fraction size) const {
    internals::no_whole_number<Fraction>();
    return {this, static_cast<int>(size)};
  }
  constexpr std::string_view text() const { return name; }
};

namespace internals {
constexpr bool same_name(const Axis& a, const Axis& b) { return a.text() == b.text(); }
/// The first of several axes that has the name of another; null, if each has a name of its own. (One of them is null
/// where a program is refused for another reason, as layers that are no member.)
constexpr const Axis* namesake(const auto& axes) {
  for (int i = 0; i < axes.size(); ++i)
    for (int j = 0; j < i; ++j)
      if (axes[i] != nullptr && axes[j] != nullptr && same_name(*axes[i], *axes[j])) return axes[i];
  return nullptr;
}
}  // namespace internals

namespace axes {
inline constexpr Axis data{"data"};
inline constexpr Axis tensor{"tensor"};
inline constexpr Axis sequence{"sequence"};
inline constexpr Axis expert{"expert"};
inline constexpr Axis stage{"stage"};
/// No axis of ranks: where a rank keeps what is `Stored<host>`, the memory beside its device.
inline constexpr Axis host{"host"};
}  // namespace axes

namespace internals {
inline constexpr int max_axes = 6;  ///< axes of one mesh, and axes that one tensor is annotated with
}  // namespace internals

}  // namespace parallel
