// Several operations in one: the same arithmetic in the same order, hence the same bits, on pieces that stay in the
// cache. Where that gains nothing there is no kernel, and the parts run one after the other.
#pragma once
#include <array>

#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/random.hpp>

namespace parallel::cpu {

/// A product and a sum with it of a number for every column. What comes behind, gelu, or behind a product alone, its
/// gradient, is quicker row by row when all is there than tile by tile, so these have no kernels.
template <class T>
void matmul_add(std::span<const Call> calls) {
  const Finish add{[](const Call& c, const Tile& tile) {
                     // of one row it does not matter
                     const bool bias_first = c.operands[0].elements() < c.operands[1].elements();
                     const T *products = c.operands[bias_first].as<const T>(),
                             *bias = c.operands[!bias_first].as<const T>() + tile.column;
                     T* sums = c.results[0].as<T>();
                     for (Index i = 0, at = tile.row * tile.stride + tile.column; i < tile.rows; ++i, at += tile.stride)
                       row<T, std::plus<>>(products + at, bias, sums + at, tile.columns);
                   },
                   &calls[1]};
  product<T>(calls[0], add);
}

/// The part of an operand that meets `count` indices, from `begin` on, of dimension d of the result.
inline void narrow_to(View& v, const View& result, int d, Index begin, Index count) {
  const int own = d - (result.rank - v.rank);
  if (own < 0 || v.size[own] != result.size[d]) return;
  v.data = static_cast<std::byte*>(v.data) + begin * v.extent(own + 1, v.rank) * bytes_of(v.dtype);
  v.size[own] = count;
  v.offset[own] += begin;
}
/// Calls kernels that go element by element one after the other on pieces of their results, along the outer dimensions.
inline void in_pieces_along(int d, std::span<const Call> calls) {
  constexpr Index most = 16384;  // elements: what several operands need of them stays in the second cache
  const View& whole = calls[0].results[0];
  const Index inner = whole.extent(d + 1, whole.rank);
  if (d + 1 >= whole.rank || whole.extent(d, whole.rank) <= most) {
    for (const Call& call : calls) call.kernel(call);
    return;
  }
  in_chunks(
      whole.size[d],
      [&](Index begin, Index count) {
        std::array<Call, 4> pieces;  // no fusion is longer
        for (std::size_t i = 0; i < calls.size(); ++i) {
          pieces[i] = calls[i];
          for (View& v : pieces[i].operands) narrow_to(v, whole, d, begin, count);
          for (View& v : pieces[i].results) narrow_to(v, whole, d, begin, count);
        }
        in_pieces_along(d + 1, std::span(pieces).first(calls.size()));
      },
      std::max<Index>(1, most / std::max<Index>(1, inner)));
}
inline void in_pieces(std::span<const Call> calls) { in_pieces_along(0, calls); }

}  // namespace parallel::cpu
