// Several operations in one: the same arithmetic in the same order, hence the same bits, on pieces that stay in the
// cache. Where that gains nothing there is no kernel, and the parts run one after the other.
#pragma once
#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/split.hpp>

namespace parallel::cpu {

/// (x, w, bias) -> the product, the product + bias. What comes behind it, gelu, or behind a product alone, its
/// gradient, is quicker row by row when all is there than tile by tile, so these have no kernels.
template <class T>
void matmul_add(const Call& call) {
  product<T>(call, {[](const Call& c, const Tile& tile) {
                      const T *products = c.results[0].as<const T>(), *bias = c.operands[2].as<const T>() + tile.column;
                      T* sums = c.results[1].as<T>();
                      for (Index i = 0, at = tile.row * tile.stride + tile.column; i < tile.rows;
                           ++i, at += tile.stride)
                        row<T, std::plus<>>(products + at, bias, sums + at, tile.columns);
                    },
                    &call});
}

/// The part of an operand that meets `count` indices, from `begin` on, of dimension d of the result.
inline void narrow_to(View& v, const View& result, int d, Index begin, Index count) {
  const int own = d - (result.rank - v.rank);
  if (own < 0 || v.size[own] != result.size[d]) return;
  v.data = static_cast<std::byte*>(v.data) + begin * v.extent(own + 1, v.rank) * bytes_of(v.dtype);
  v.size[own] = count;
  v.offset[own] += begin;
}
/// Calls a kernel that goes element by element on pieces of its result, along the outer dimensions.
template <Kernel kernel>
void in_pieces(const Call& call, int d = 0) {
  constexpr Index most = 16384;  // elements: what several operands need of them stays in the second cache
  const View& whole = call.results[0];
  const Index inner = whole.extent(d + 1, whole.rank);
  if (d + 1 >= whole.rank || whole.extent(d, whole.rank) <= most) return kernel(call);
  in_chunks(
      whole.size[d],
      [&](Index begin, Index count) {
        Call piece = call;
        for (View& v : piece.operands) narrow_to(v, whole, d, begin, count);
        for (View& v : piece.results) narrow_to(v, whole, d, begin, count);
        in_pieces<kernel>(piece, d + 1);
      },
      std::max<Index>(1, most / std::max<Index>(1, inner)));
}

/// A fused operation as a kernel for its first part and one for its second.
template <const Operation& fused, Kernel first, Kernel then>
void both(const Call& call) {
  const SplitCall two = split(*operation::fusion_of(fused), call);
  first(two.first);
  then(two.then);
}
template <class T>
void add_gelu(const Call& call) {
  in_pieces<both<operation::add_gelu, add<T>, gelu<T>>>(call);
}
template <class T>
void add_dropout(const Call& call) {
  in_pieces<both<operation::add_dropout, add<T>, dropout<T>>>(call);
}
template <class T>
void dropout_add(const Call& call) {
  in_pieces<both<operation::dropout_add, dropout<T>, add<T>>>(call);
}
template <class T>
void add_dropout_add(const Call& call) {
  in_pieces<both<operation::add_dropout_add, both<operation::add_dropout, add<T>, dropout<T>>, add<T>>>(call);
}

}  // namespace parallel::cpu
