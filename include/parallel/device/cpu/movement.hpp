// The same elements elsewhere: copies, casts, transposes, slices, concatenation.
#pragma once
#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// x as it is, also under another shape.
inline void copy(const Call& call) { copy(call.results[0], call.operands[0]); }

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

/// (term, sum): the sum.
template <class T>
void rounded(const Call& call) {
  copy(call.results[0], call.operands[1]);
}

/// x, whose dimension ints[0] is whole, with its elements in the order of the result.
template <class T>
void reorder(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const int d = static_cast<int>(call.ints[0]);
  const Index outer = x.extent(0, d), n = x.size[d], inner = x.extent(d + 1, x.rank);
  const T* from = x.as<const T>();
  T* to = out.as<T>();
  for (Index o = 0; o < outer; ++o, from += n * inner, to += n * inner)
    for (Index i = 0, count = 0; i < n; i += count) {
      const Index place = x.standing(d).place(out.at(d, i));
      count = std::min(out.run(d, i), x.run(d, place));
      std::memcpy(to + i * inner, from + place * inner, bytes(count * inner, sizeof(T)));
    }
}

/// to[i][j] = from[j][i], whose rows are `from_stride` and `to_stride` apart. In tiles, so that a line that is read
/// stays in the first cache until all of it is.
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
  const Walk<2> walk = transposed(call);
  const T* source = call.operands[0].as<const T>();
  T* target = call.results[0].as<T>();
  each_part(team_for_elements(call, call.results[0].elements()), walk, [=](const Walk<2>& some) {
    const Index n = some.extent();
    if (some.step(0) == 1)
      for (auto at = some.rows(); at; ++at) std::memcpy(target + at[1], source + at[0], bytes(n, sizeof(T)));
    else
      for (auto at = some.planes(); at; ++at)
        transpose_plane(source + at[0], some.step(0), target + at[1], some.step(1, 1), some.extent(1), n);
  });
}

/// ints: dimension, begin, end.
inline void slice(const Call& call) {
  const View& out = call.results[0];
  copy_box(sliced(call), call.operands[0], out, team_for_elements(call, out.elements()));
}
/// x from position ints[1] of dimension ints[0] on, zeros around it.
inline void pad(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  zero(out, team_for_elements(call, out.elements()));
  copy_box(placed(x, out, call.ints[1] * strides(out)[static_cast<int>(call.ints[0])]), x, out,
           team_for_elements(call, x.elements()));
}
/// (sum, x): sum and x from position ints[1] of dimension ints[0] on, in the storage of sum.
template <class T>
void accumulate_slice(const Call& call) {
  const View &sum = call.results[0], &x = call.operands[1];
  const int dim = static_cast<int>(call.ints[0]);
  const Index inner = sum.extent(dim + 1, sum.rank), own = x.size[dim] * inner, row = sum.size[dim] * inner;
  T* const to = sum.as<T>() + call.ints[1] * inner;
  each_part(team_for_elements(call, x.elements()), sum.extent(0, dim), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) add_to(to + i * row, x.as<const T>() + i * own, own);
  });
}
/// (memory, x, position): the memory, with x from `position` of dimension ints[0] on as far as there is room.
inline void write(const Call& call) {
  const View &memory = call.results[0], &x = call.operands[1];
  const int dim = static_cast<int>(call.ints[0]);
  const Index position = *call.operands[2].as<const int>(), begin = std::max<Index>(position, 0);
  const Index end = std::min(position + x.size[dim], memory.size[dim]);
  if (end <= begin) return;
  View written = x;
  written.size[dim] = end - begin;
  const Steps<max_rank> from = strides(x), to = strides(memory);
  copy_box({through(written, {from, to}), (begin - position) * from[dim], begin * to[dim]}, x, memory);
}
/// All operands one behind the other.
inline void bucket(const Call& call) {
  View part = call.results[0];
  for (const View& x : call.operands) {
    if (x.elements() > 0) std::memcpy(part.data, x.data, x.bytes());
    part.data = part.as<std::byte>() + x.bytes();
  }
}
/// All operands one behind the other along dimension ints[0].
inline void concatenate(const Call& call) {
  each_concatenated(call, [&](const View& x, const Box& box) {
    copy_box(box, x, call.results[0], team_for_elements(call, x.elements()));
  });
}

}  // namespace parallel::internals::cpu
