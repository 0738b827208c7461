// Parts of tensors in memory: copies, what two parts of one tensor have in common, and slices brought together for an
// exchange.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <parallel/device/cpu/walk.hpp>

namespace parallel::internals::cpu {

inline std::size_t bytes(Index elements, int of_each) {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(of_each);
}
inline void copy(const View& to, const View& from) {
  if (to.data != from.data && to.elements() > 0)
    std::memcpy(to.data, from.data, bytes(to.elements(), bytes_of(to.dtype)));
}
inline void zero(const View& view) {
  if (view.elements() > 0) std::memset(view.data, 0, bytes(view.elements(), bytes_of(view.dtype)));
}

/// Copies a box of the extents of `box` from one tensor to another, both contiguous; the box begins at an element of
/// each.
inline void copy_box(const View& box, const void* from, const Steps<max_rank>& from_strides, void* to,
                     const Steps<max_rank>& to_strides) {
  Walk<2> walk;
  for (int d = 0; d < box.rank; ++d) walk.add(box.size[d], {from_strides[d], to_strides[d]});
  walk.make_rows_contiguous();
  const int size = bytes_of(box.dtype);
  const std::size_t row = bytes(walk.extent(), size);
  for (auto at = walk.rows(); at; ++at)
    std::memcpy(static_cast<std::byte*>(to) + at[1] * size, static_cast<const std::byte*>(from) + at[0] * size, row);
}
/// `from` and `to` are parts of one full tensor: what both hold is copied, the rest of `to` is zero. It serves a slice
/// and its conjugate, the padding with zeros.
inline void copy_overlap(const View& from, const View& to) {
  View both = to;
  Index source = 0, target = 0;
  const Steps<max_rank> from_strides = strides(from), to_strides = strides(to);
  bool covers = true;
  for (int d = 0; d < to.rank; ++d) {
    const Index begin = std::max(from.offset[d], to.offset[d]),
                end = std::min(from.offset[d] + from.size[d], to.offset[d] + to.size[d]);
    both.size[d] = std::max<Index>(end - begin, 0);
    source += (begin - from.offset[d]) * from_strides[d];
    target += (begin - to.offset[d]) * to_strides[d];
    covers = covers && both.size[d] == to.size[d];
  }
  if (!covers) zero(to);
  if (both.elements() == 0) return;
  const int size = bytes_of(to.dtype);
  copy_box(both, static_cast<const std::byte*>(from.data) + source * size, from_strides,
           static_cast<std::byte*>(to.data) + target * size, to_strides);
}

/// [outer][n][inner] elements of `size` bytes to [n][outer][inner].
inline void pack(const void* from, void* to, Index outer, Index n, Index inner, int size) {
  const std::size_t row = bytes(inner, size);
  const auto copy_rows = [&](auto constant_row) {  // a row of known length is copied without a call
    for (Index i = 0; i < n; ++i)
      for (Index o = 0; o < outer; ++o)
        std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(i * outer + o) * constant_row,
                    static_cast<const std::byte*>(from) + static_cast<std::size_t>(o * n + i) * constant_row,
                    constant_row);
  };
  if (row == 4)
    copy_rows(std::integral_constant<std::size_t, 4>{});
  else if (row == 8)
    copy_rows(std::integral_constant<std::size_t, 8>{});
  else
    copy_rows(row);
}
/// [n][outer][inner] elements to [outer][n][inner].
inline void unpack(const void* from, void* to, Index outer, Index n, Index inner, int size) {
  pack(from, to, n, outer, inner, size);
}

}  // namespace parallel::internals::cpu
