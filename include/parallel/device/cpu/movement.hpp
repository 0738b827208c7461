// The same elements elsewhere: copies, casts, transposes, slices, and what brings a rank's part into another part of the same tensor.
#pragma once
#include <cstring>
#include <parallel/device/cpu/walk.hpp>

namespace parallel::cpu {

inline std::size_t bytes(Index elements, int of_each) { return static_cast<std::size_t>(elements) * static_cast<std::size_t>(of_each); }
inline void copy(const View& to, const View& from) {
  if (to.data != from.data && to.elements() > 0) std::memcpy(to.data, from.data, bytes(to.elements(), bytes_of(to.dtype)));
}
inline void zero(const View& view) {
  if (view.elements() > 0) std::memset(view.data, 0, bytes(view.elements(), bytes_of(view.dtype)));
}

/// x as it is, also under another shape.
template <class T>
void copy(const Call& call) {
  copy(call.results[0], call.operands[0]);
}

template <class To, class From>
void cast_from(const View& from, const View& to) {
  const From* x = from.as<const From>();
  fill(to.as<To>(), to.elements(), [=](Index i) { return static_cast<To>(x[i]); });
}
/// x in another element type.
template <class T>
void cast(const Call& call) {
  const View &from = call.operands[0], &to = call.results[0];
  if (from.dtype == DType::f32)
    cast_from<T, float>(from, to);
  else if (from.dtype == DType::f64)
    cast_from<T, double>(from, to);
  else
    cast_from<T, int>(from, to);
}

/// to[i][j] = from[j][i], whose rows are `from_stride` and `to_stride` apart. In tiles, so that a line that is read stays in the first cache until
/// all of it is.
template <class T>
void transpose_plane(const T* from, Index from_stride, T* to, Index to_stride, Index rows, Index columns) {
  constexpr Index tile = 16;
  for (Index i = 0; i < rows; i += tile)
    for (Index j = 0; j < columns; j += tile) {
      const Index last = std::min(i + tile, rows), count = std::min(tile, columns - j);
      for (Index row = i; row < last; ++row) {
        const T* source = from + row + j * from_stride;
        T* target = to + row * to_stride + j;
        for (Index c = 0; c < count; ++c, source += from_stride) target[c] = *source;
      }
    }
}
/// ints: which dimension of x each dimension of the result is.
template <class T>
void transpose(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Steps<max_rank> strides_of_x = strides(x), to = strides(out);
  Steps<max_rank> from;
  int last = -1, beside = -1;  // the dimensions whose elements lie side by side in the result, and in x
  for (int d = 0; d < out.rank; ++d) {
    from.of[d] = strides_of_x[static_cast<int>(call.ints[d])];
    if (out.size[d] > 1) last = d;
    if (out.size[d] > 1 && from[d] == 1) beside = d;
  }
  Walk<2> walk;
  const auto add = [&](int d) { walk.add(out.size[d], {from[d], to[d]}); };
  for (int d = 0; d < out.rank; ++d)
    if (d != beside && d != last) add(d);
  if (beside != last) add(beside);
  if (last >= 0) add(last);
  const T* source = x.as<const T>();
  T* target = out.as<T>();
  const Index n = walk.extent();
  if (walk.step(0) == 1)
    for (auto at = walk.rows(); at; ++at) std::memcpy(target + at[1], source + at[0], bytes(n, sizeof(T)));
  else
    for (auto at = walk.planes(); at; ++at) transpose_plane(source + at[0], walk.step(0), target + at[1], walk.step(1, 1), walk.extent(1), n);
}

/// Copies a box of the extents of `box` from one tensor to another, both contiguous; the box begins at an element of each.
inline void copy_box(const View& box, const void* from, const Steps<max_rank>& from_strides, void* to, const Steps<max_rank>& to_strides) {
  Walk<2> walk;
  for (int d = 0; d < box.rank; ++d) walk.add(box.size[d], {from_strides[d], to_strides[d]});
  const int size = bytes_of(box.dtype);
  const std::size_t row = bytes(walk.extent(), size);
  for (auto at = walk.rows(); at; ++at)
    std::memcpy(static_cast<std::byte*>(to) + at[1] * size, static_cast<const std::byte*>(from) + at[0] * size, row);
}
/// ints: dimension, begin, end.
template <class T>
void slice(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Steps<max_rank> from = strides(x);
  copy_box(out, x.as<const T>() + call.ints[1] * from[static_cast<int>(call.ints[0])], from, out.data, strides(out));
}
/// x from position ints[1] of dimension ints[0] on, zeros around it.
template <class T>
void pad(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Steps<max_rank> to = strides(out);
  zero(out);
  copy_box(x, x.data, strides(x), out.as<T>() + call.ints[1] * to[static_cast<int>(call.ints[0])], to);
}
/// All operands one behind the other along dimension ints[0].
template <class T>
void concatenate(const Call& call) {
  const View& out = call.results[0];
  const Steps<max_rank> to = strides(out);
  const int dim = static_cast<int>(call.ints[0]);
  T* begin = out.as<T>();
  for (const View& x : call.operands) {
    copy_box(x, x.data, strides(x), begin, to);
    begin += x.size[dim] * to[dim];
  }
}

/// `from` and `to` are parts of one full tensor: what both hold is copied, the rest of `to` is zero. It serves a slice and its conjugate, the
/// padding with zeros.
inline void copy_overlap(const View& from, const View& to) {
  View both = to;
  Index source = 0, target = 0;
  const Steps<max_rank> from_strides = strides(from), to_strides = strides(to);
  bool covers = true;
  for (int d = 0; d < to.rank; ++d) {
    const Index begin = std::max(from.offset[d], to.offset[d]), end = std::min(from.offset[d] + from.size[d], to.offset[d] + to.size[d]);
    both.size[d] = std::max<Index>(end - begin, 0);
    source += (begin - from.offset[d]) * from_strides[d], target += (begin - to.offset[d]) * to_strides[d];
    covers = covers && both.size[d] == to.size[d];
  }
  if (!covers) zero(to);
  if (both.elements() == 0) return;
  const int size = bytes_of(to.dtype);
  copy_box(both, static_cast<const std::byte*>(from.data) + source * size, from_strides, static_cast<std::byte*>(to.data) + target * size, to_strides);
}

template <class Row>
void pack_rows(const void* from, void* to, Index outer, Index n) {
  for (Index i = 0; i < n; ++i)
    for (Index o = 0; o < outer; ++o) static_cast<Row*>(to)[i * outer + o] = static_cast<const Row*>(from)[o * n + i];
}
/// [outer][n][inner] elements of `size` bytes to [n][outer][inner].
inline void pack(const void* from, void* to, Index outer, Index n, Index inner, int size) {
  const std::size_t row = bytes(inner, size);
  if (row == 4) return pack_rows<std::uint32_t>(from, to, outer, n);
  if (row == 8) return pack_rows<std::uint64_t>(from, to, outer, n);
  for (Index i = 0; i < n; ++i)
    for (Index o = 0; o < outer; ++o)
      std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(i * outer + o) * row,
                  static_cast<const std::byte*>(from) + static_cast<std::size_t>(o * n + i) * row, row);
}
/// [n][outer][inner] elements to [outer][n][inner].
inline void unpack(const void* from, void* to, Index outer, Index n, Index inner, int size) { pack(from, to, n, outer, inner, size); }

}  // namespace parallel::cpu
