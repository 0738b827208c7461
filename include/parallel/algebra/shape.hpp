// The shape of a tensor as it is written: Shape<768, 3072 / tensor>.
#pragma once
#include <cstdint>
#include <type_traits>

#include <parallel/algebra/order.hpp>

namespace parallel {
namespace internals {
inline constexpr int max_rank = 6;     ///< dimensions of one tensor
inline constexpr int max_nesting = 3;  ///< axes that split one dimension

/// An axis where an extent is missing.
template <class Instead>
constexpr void no_extent() {
  static_assert(sizeof(Instead) > 99,
                "parallel: an extent stands before the axis that splits it, and whole before all of them; write "
                "Shape<8 / data, 16>, Shape<4 * 8 / tensor>, over two axes Shape<16 / data / tensor>; a size that is "
                "counted with, 4 * h, is an int and no Dim");
}
}  // namespace internals

/// One dimension: its full logical extent, and the axes that split it, outermost first (`4096 / data / sequence`), in
/// what order. It iterates over its axes.
struct Dim {
  std::int64_t size = 1;
  const Axis* axes[internals::max_nesting]{};
  int count = 0;  ///< how many axes split it
  /// how its elements stand, for the ranks of `ordered_for`; they stand so also where it is whole
  Order order = Order::contiguous;
  const Axis* ordered_for = nullptr;

  constexpr Dim() = default;
  constexpr Dim(std::int64_t n) : size(n) {}
  template <class Fraction>
  requires(std::is_floating_point_v<Fraction>) constexpr Dim(Fraction n) : size(static_cast<std::int64_t>(n)) {
    internals::no_whole_number<Fraction>();
  }
  template <class Alone>
  requires(std::is_same_v<Alone, Axis>) constexpr Dim(const Alone&) { internals::no_extent<Alone>(); }
  constexpr Dim(std::int64_t n, const Axis* const (&a)[internals::max_nesting], int c, Order o = Order::contiguous,
                const Axis* f = nullptr)
      : size(n), axes{a[0], a[1], a[2]}, count(c), order(o), ordered_for(f) {}
  constexpr bool operator==(const Dim&) const = default;

  constexpr const Axis* const* begin() const { return axes; }
  constexpr const Axis* const* end() const { return axes + count; }
  constexpr bool split_by(const Axis* axis) const {
    for (const Axis* a : *this)
      if (a == axis) return true;
    return false;
  }
  constexpr bool innermost(const Axis* axis) const { return count > 0 && axes[count - 1] == axis; }
  constexpr bool ordered() const { return ordered_for != nullptr; }
  constexpr bool ordered_as(const Dim& other) const { return order == other.order && ordered_for == other.ordered_for; }
  /// The same, whole, as it stands.
  constexpr Dim whole() const { return Dim(size).standing_as(*this); }
  /// The same, not split by one of its axes.
  constexpr Dim without(const Axis* axis) const {
    Dim result = whole();
    for (const Axis* a : *this)
      if (a != axis) result.axes[result.count++] = a;
    return result;
  }
  /// The same, standing as another does.
  constexpr Dim standing_as(const Dim& other) const {
    Dim result = *this;
    result.order = other.order;
    result.ordered_for = other.ordered_for;
    return result;
  }
};

/// `3072 / tensor`: the dimension is split over the axis, within the axes that already split it.
constexpr Dim operator/(Dim dim, const Axis& axis) {
  dim.axes[dim.count++] = &axis;
  return dim;
}
/// `64 / zigzag(sequence)`: the same, and the dimension stands in an order for the axis, the first that splits it.
constexpr Dim operator/(Dim dim, const Ordered& by) {
  if (by.order == Order::contiguous) return dim / *by.axis;
  dim.order = by.order;
  dim.ordered_for = by.axis;
  return dim / *by.axis;
}

template <class Number>
requires(std::is_arithmetic_v<Number>) constexpr Dim operator/(const Axis& axis, Number extent) {
  internals::no_extent<Number>();
  return Dim(static_cast<std::int64_t>(extent)) / axis;
}
template <class Number>
requires(std::is_arithmetic_v<Number>) constexpr Dim operator*(Number extent, const Axis& axis) {
  return axis / extent;
}
#define PARALLEL_BEHIND(sign)                                                                  \
  template <class Number>                                                                      \
  requires(std::is_arithmetic_v<Number>) constexpr Dim operator sign(const Dim& dim, Number) { \
    internals::no_extent<Number>();                                                            \
    return dim;                                                                                \
  }
PARALLEL_BEHIND(*)
PARALLEL_BEHIND(/)
PARALLEL_BEHIND(+)
PARALLEL_BEHIND(-)
#undef PARALLEL_BEHIND
#define PARALLEL_BEFORE(sign)                                                                  \
  template <class Number>                                                                      \
  requires(std::is_arithmetic_v<Number>) constexpr Dim operator sign(Number, const Dim& dim) { \
    internals::no_extent<Number>();                                                            \
    return dim;                                                                                \
  }
PARALLEL_BEFORE(*)
PARALLEL_BEFORE(+)
PARALLEL_BEFORE(-)
#undef PARALLEL_BEFORE
template <class Other>
requires(std::is_same_v<Other, Axis>) constexpr const Axis& operator*(const Axis& axis, const Other&) {
  internals::no_extent<const Other>();
  return axis;
}
template <class Other>
requires(std::is_same_v<Other, Axis>) constexpr const Axis& operator,(const Axis& axis, const Other&) {
  internals::no_extent<volatile Other>();
  return axis;
}

template <Dim... dimensions>
struct Shape {
  static constexpr int rank = sizeof...(dimensions);
  static constexpr Dim dims[sizeof...(dimensions) + 1]{dimensions...};
};

}  // namespace parallel
