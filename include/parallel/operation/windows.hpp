// Windows that move over the last one or two dimensions of a tensor [batch, channels, width] or [batch, channels,
// height, width]: what convolutions and pools share.
#pragma once
#include <parallel/operation/elementwise.hpp>

namespace parallel {

/// A number for the height and one for the width; one number is both. A tensor without a height takes the width's.
struct HeightWidth {
  int height = 1, width = 1;
  constexpr HeightWidth(int both) : height(both), width(both) {}
  /// What is no number, as "same", fits no window.
  constexpr HeightWidth(const char*) : height(-1), width(-1) {}
  constexpr HeightWidth(int h, int w) : height(h), width(w) {}
};

namespace internals {
/// How windows move. An operation's attributes: the strides of the dimensions, the paddings, then one number more of
/// each dimension, which each operation says.
struct Windows {
  int dims;  ///< over which windows move
  const Ints& ints;
  constexpr Windows(int rank, const Ints& i) : dims(rank - 2), ints(i) {}
  constexpr std::int64_t stride(int d) const { return ints[d]; }
  constexpr std::int64_t padding(int d) const { return ints[dims + d]; }
  constexpr std::int64_t third(int d) const { return ints[2 * dims + d]; }

  /// How often a window finds room.
  constexpr std::int64_t places(int d, std::int64_t extent, std::int64_t window) const {
    return (extent + 2 * padding(d) - window) / stride(d) + 1;
  }
  constexpr Refusal fits(int d, std::int64_t extent, std::int64_t window) const {
    if (stride(d) > 0 && padding(d) >= 0 && window > 0 && window <= extent + 2 * padding(d)) return {};
    return {Reason::window, {extent, window, stride(d), padding(d)}};
  }
  /// Whether a dimension can be cut between windows: none reaches beyond its stride, and nothing is left over.
  constexpr bool apart(int d, std::int64_t extent, std::int64_t window, std::int64_t windows) const {
    return padding(d) == 0 && window <= stride(d) && extent == stride(d) * windows && windows > 1;
  }
};

namespace spelling {
/// Attributes of an operation on a tensor of type X.
template <const Operation& operation, class X, HeightWidth... each>
struct OverWindows {
  template <class... Y>
  static constexpr auto apply(Here here, const Y&... y) {
    if constexpr (X::type.layout.rank() == 3)
      return Apply<operation, each.width...>{}(here, y...);
    else
      return by_pairs(std::make_integer_sequence<int, 2 * sizeof...(each)>{}, here, y...);
  }

 private:
  static constexpr HeightWidth all[]{each...};
  template <int... i, class... Y>
  static constexpr auto by_pairs(std::integer_sequence<int, i...>, Here here, const Y&... y) {
    return Apply<operation, (i % 2 == 0 ? all[i / 2].height : all[i / 2].width)...>{}(here, y...);
  }
};
}  // namespace spelling
}  // namespace internals

}  // namespace parallel
