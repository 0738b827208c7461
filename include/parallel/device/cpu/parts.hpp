// Parts of tensors in memory: copies, what two parts of one tensor have in common, and slices brought together for an
// exchange.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <parallel/device/cpu/boxes.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

inline std::size_t bytes(Index elements, int of_each) {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(of_each);
}
inline void copy(const View& to, const View& from) {
  if (to.data != from.data && to.elements() > 0) std::memcpy(to.data, from.data, to.bytes());
}
inline void zero(const View& view, Team* team = nullptr) {
  if (view.elements() == 0) return;
  each_part(team, static_cast<Index>(view.bytes()), 64, [&](Index begin, Index end) {
    std::memset(view.as<std::byte>() + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

inline void copy_box(Box box, const View& from, const View& to, Team* team = nullptr) {
  box.walk.make_rows_contiguous();
  const int size = bytes_of(to.dtype);
  const auto* const source = static_cast<const std::byte*>(from.data) + box.from * size;
  auto* const target = static_cast<std::byte*>(to.data) + box.to * size;
  each_part(team, box.walk, [=](const Walk<2>& walk) {
    const std::size_t row = bytes(walk.extent(), size);
    for (auto at = walk.rows(); at; ++at) std::memcpy(target + at[1] * size, source + at[0] * size, row);
  });
}
/// `from` and `to` are parts of one full tensor: what both hold is copied, the rest of `to` is zero. It serves a slice
/// and its conjugate, the padding with zeros.
inline void copy_overlap(const View& from, const View& to) {
  const Common both = in_common(from, to);
  if (!both.covers) zero(to);
  if (!both.empty) copy_box(both.box, from, to);
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
