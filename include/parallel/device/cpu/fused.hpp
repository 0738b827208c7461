// Several operations in one: the same arithmetic in the same order, hence the same bits, on pieces that stay in the
// cache. Where that gains nothing there is no kernel, and the parts run one after the other.
#pragma once
#include <algorithm>
#include <array>

#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/random.hpp>

namespace parallel::internals::cpu {

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
                       row<T, Add>(products + at, bias, sums + at, tile.columns);
                   },
                   &calls[1]};
  product<T>(calls[0], add);
}

/// Makes v the part of a whole operand that meets `count` indices, from `begin` on, of dimension d of the result.
inline void narrow_to(View& v, const View& operand, const View& result, int d, Index begin, Index count) {
  const int own = d - (result.rank - operand.rank);
  if (own < 0 || operand.size[own] != result.size[d]) return;
  v.data =
      static_cast<std::byte*>(operand.data) + begin * operand.extent(own + 1, operand.rank) * bytes_of(operand.dtype);
  v.size[own] = count;
  v.offset[own] = operand.offset[own] + begin;
}
inline void one_by_one(std::span<const Call> calls) {
  for (const Call& call : calls) call.kernel(call);
}
/// Calls kernels that go element by element one after the other on pieces of their results, along the outer
/// dimensions.
inline void in_pieces_along(int d, std::span<const Call> calls) {
  constexpr Index most = 16384;  // elements: what several operands need of them stays in the second cache
  const View& whole = calls[0].results[0];
  const Index inner = whole.extent(d + 1, whole.rank);
  if (d + 1 >= whole.rank || whole.extent(d, whole.rank) <= most) return one_by_one(calls);
  std::array<Call, longest_fusion> pieces;  // copied once: a call has some 2 KB
  std::copy(calls.begin(), calls.end(), pieces.begin());
  for (Call& piece : pieces) piece.context = nullptr;  // too small to be shared out
  in_chunks(
      whole.size[d],
      [&](Index begin, Index count) {
        for (std::size_t i = 0; i < calls.size(); ++i) {
          for (int o = 0; o < calls[i].operands.size(); ++o)
            narrow_to(pieces[i].operands[o], calls[i].operands[o], whole, d, begin, count);
          for (int r = 0; r < calls[i].results.size(); ++r)
            narrow_to(pieces[i].results[r], calls[i].results[r], whole, d, begin, count);
        }
        in_pieces_along(d + 1, std::span(pieces).first(calls.size()));
      },
      std::max<Index>(1, most / std::max<Index>(1, inner)));
}
/// Smaller tensors the last cache keeps from one operation to the next: silu times another took 0.91 to 0.96 of the
/// time in pieces for 8192 x 4096, as long for 4096 x 1536 (medians of 61, one core of an EPYC).
inline void in_pieces(std::span<const Call> calls) {
  if (calls[0].results[0].elements() < Index{1} << 24) return one_by_one(calls);
  in_pieces_along(0, calls);
}

}  // namespace parallel::internals::cpu
