// In which order the elements of a dimension stand before it is split: as they are counted, or so that each rank's
// slice has some from the front and some from the back, or every n-th.
#pragma once
#include <cstdint>
#include <type_traits>

#include <parallel/algebra/axis.hpp>

namespace parallel {

/// An order belongs to a dimension and to the axis that splits it first. Of n ranks
enum class Order : std::uint8_t {
  contiguous,  ///< rank k has the k-th of n slices
  zigzag,      ///< rank k has the k-th of 2n slices, and the k-th from behind: causal attention is as much for each
  cyclic,      ///< rank k has the elements k, k + n, k + 2n, ...
};
constexpr Order last_of(Order) { return Order::cyclic; }

/// `64 / zigzag(sequence)`: an axis that splits a dimension in an order.
struct Ordered {
  const Axis* axis = nullptr;
  Order order = Order::contiguous;
};
constexpr Ordered zigzag(const Axis& axis) { return {&axis, Order::zigzag}; }
constexpr Ordered cyclic(const Axis& axis) { return {&axis, Order::cyclic}; }
/// Of anything else: refused.
template <class Extent>
requires(!std::is_convertible_v<const Extent&, const Axis&>) constexpr Extent zigzag(const Extent& e) {
  static_assert(std::is_void_v<Extent>,
                "parallel: an order is of an axis, and not of an extent; write 64 / zigzag(sequence)");
  return e;
}
template <class Extent>
requires(!std::is_convertible_v<const Extent&, const Axis&>) constexpr Extent cyclic(const Extent& e) {
  static_assert(std::is_void_v<Extent>,
                "parallel: an order is of an axis, and not of an extent; write 64 / cyclic(sequence)");
  return e;
}

namespace internals {
/// How `size` elements stand for `ranks` slices of one extent, in zigzag of twice as many halves. Within a slice they
/// ascend.
struct Standing {
  Order order = Order::contiguous;
  std::int64_t size = 1;
  std::int64_t ranks = 1;

  constexpr std::int64_t slice() const { return size / ranks; }
  /// Which element stands at a place.
  constexpr std::int64_t element(std::int64_t place) const {
    const std::int64_t rank = place / slice(), within = place % slice(), half = slice() / 2;
    switch (order) {
      case Order::zigzag: return within < half ? rank * half + within : size - (rank + 1) * half + within - half;
      case Order::cyclic: return within * ranks + rank;
      default: return place;
    }
  }
  /// And where one stands.
  constexpr std::int64_t place(std::int64_t element) const {
    const std::int64_t half = slice() / 2;
    switch (order) {
      case Order::zigzag: {
        const std::int64_t part = element / half;
        return (part < ranks ? part : 2 * ranks - 1 - part) * slice() + (part < ranks ? 0 : half) + element % half;
      }
      case Order::cyclic: return element % ranks * slice() + element / ranks;
      default: return element;
    }
  }
  /// How many of n places from one on, all of one slice, have elements before one.
  constexpr std::int64_t below(std::int64_t place, std::int64_t n, std::int64_t element) const {
    const auto within = [](std::int64_t x, std::int64_t most) { return x < 0 ? 0 : x < most ? x : most; };
    const std::int64_t rank = place / slice(), half = slice() / 2;
    std::int64_t of_slice = element - rank * slice();
    if (order == Order::zigzag)
      of_slice = within(element - rank * half, half) + within(element - size + (rank + 1) * half, half);
    if (order == Order::cyclic) of_slice = element <= rank ? 0 : (element - rank + ranks - 1) / ranks;
    return within(of_slice - place % slice(), n);
  }
  /// How many places from `place` on have elements that stand beside each other.
  constexpr std::int64_t run(std::int64_t place) const {
    const std::int64_t within = place % slice(), half = slice() / 2;
    switch (order) {
      case Order::zigzag: return within < half ? half - within : slice() - within;
      case Order::cyclic: return ranks == 1 ? size - place : 1;
      default: return size - place;
    }
  }
};
}  // namespace internals

}  // namespace parallel
