// The same elements elsewhere: transposes, slices, paddings, what is put one behind the other. Each element is read
// once and written once.
#pragma once
#include <parallel/device/cuda/body/box.hpp>

namespace parallel::internals::cuda {

/// to[i * to_step + j] = from[i + j * from_step] in tiles, which turn in shared memory: both sides are read and written
/// along their rows.
template <class U>
struct TransposePlanes {
  // so that columns lie in different banks
  static constexpr int threads = 256, tile = 64, row = tile + (sizeof(U) < 4 ? 4 / static_cast<int>(sizeof(U)) : 1);
  static constexpr std::size_t shared_bytes = tile * row * sizeof(U);
  const U* from;
  U* to;
  Index rows, columns, from_step, to_step;
  Divisor down, across;  // tiles
  int rank;              // of the dimensions that enclose a plane
  Divisor extent[max_rank];
  Index from_outer[max_rank], to_outer[max_rank];

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    Index rest = block.index;
    const Index j = across.divide(rest) * tile, i = down.divide(rest) * tile;
    const U* source = from + i + j * from_step;
    U* target = to + i * to_step + j;
    for (int d = 0; d < rank; ++d) {
      const Index here = extent[d].divide(rest);
      source += here * from_outer[d];
      target += here * to_outer[d];
    }
    U* const room = block.template shared<U>();
    block.each(tile * tile, [&](Index k) {
      const Index r = k % tile, c = k / tile;
      if (i + r < rows && j + c < columns) room[c * row + r] = source[r + c * from_step];
    });
    block.sync();
    block.each(tile * tile, [&](Index k) {
      const Index r = k / tile, c = k % tile;
      if (i + r < rows && j + c < columns) target[r * to_step + c] = room[c * row + r];
    });
  }
};

/// ints: which dimension of x each dimension of the result is.
template <class T>
void transpose(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const Walk<2> walk = cpu::transposed(call);
  constexpr Index narrowest = 16;  // planes for which tiles are worth it
  if (out.elements() == 0) return;
  if (walk.step(0) == 1 || std::min(walk.extent(0), walk.extent(1)) < narrowest) return copy_box(call, {walk}, x, out);
  using U = Unit<sizeof(T)>;
  using Body = TransposePlanes<U>;
  const Index across = blocks_of(walk.extent(0), Body::tile), down = blocks_of(walk.extent(1), Body::tile);
  Body body{x.as<const U>(),
            out.as<U>(),
            walk.extent(1),
            walk.extent(0),
            walk.step(0),
            walk.step(1, 1),
            Divisor(down),
            Divisor(across),
            walk.rank() - 2,
            {},
            {},
            {}};
  Index planes = 1;
  for (int d = 0; d < body.rank; planes *= walk.extent(2 + d++)) {
    body.extent[d] = Divisor(walk.extent(2 + d));
    body.from_outer[d] = walk.step(0, 2 + d);
    body.to_outer[d] = walk.step(1, 2 + d);
  }
  launch(gpu(call).stream(), planes * down * across, body, Body::shared_bytes);
}

/// Whole rows of units in another order.
template <class U>
struct Reorder {
  const U* from;
  U* to;
  Divisor inner, extent;
  Standing from_standing, to_standing;

  PARALLEL_DEVICE void operator()(Index i) const {
    Index outer = i;
    const Index within = inner.divide(outer), place = extent.divide(outer);
    const Index n = from_standing.size;
    to[i] = from[(outer * n + from_standing.place(to_standing.element(place))) * inner.by() + within];
  }
};
/// x, whose dimension ints[0] is whole, with its elements in the order of the result.
template <class T>
void reorder(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const int d = static_cast<int>(call.ints[0]);
  if (out.elements() == 0) return;
  launch_each(gpu(call).stream(), out.elements(),
              Reorder<T>{x.as<const T>(), out.as<T>(), Divisor(x.extent(d + 1, x.rank)), Divisor(x.size[d]),
                         x.standing(d), out.standing(d)});
}

/// ints: dimension, begin, end.
inline void slice(const Call& call) { copy_box(call, cpu::sliced(call), call.operands[0], call.results[0]); }
/// All operands one behind the other along dimension ints[0].
inline void concatenate(const Call& call) {
  cpu::each_concatenated(call, [&](const View& x, const cpu::Box& box) { copy_box(call, box, x, call.results[0]); });
}

/// Rows of `to`: those of `from` at `begin`, zeros around them. In units. Reads `from` once, writes `to` once.
template <class U>
struct PadRows {
  const U* from;
  U* to;
  Index begin, own;  // in a row of `from`
  Divisor row;       // of `to`

  PARALLEL_DEVICE void operator()(Index i) const {
    Index r = i;
    const Index at = row.divide(r) - begin;
    to[i] = at >= 0 && at < own ? from[r * own + at] : U{};
  }
};
/// x from position ints[1] of dimension ints[0] on, zeros around it.
inline void pad(const Call& call) {
  const View &x = call.operands[0], &out = call.results[0];
  const int dim = static_cast<int>(call.ints[0]), size = bytes_of(out.dtype);
  const Index inner = out.extent(dim + 1, out.rank) * size, own = x.size[dim] * inner, row = out.size[dim] * inner,
              begin = call.ints[1] * inner;
  const int unit = unit_of(address(x.data), address(out.data), own, row, begin);
  with_unit(unit, [&]<class U>(U) {
    launch_each(gpu(call).stream(), out.elements() * size / unit,
                PadRows<U>{x.as<const U>(), out.as<U>(), begin / unit, own / unit, Divisor(row / unit)});
  });
}

/// Rows of `to`, at `begin`, and those of `from`: in packs of n elements.
template <class T, int n>
struct AddRows {
  const T* from;
  T* to;
  Index begin, row;  // in packs, as what follows
  Divisor own;

  PARALLEL_DEVICE void operator()(Index i) const {
    Index r = i;
    const Index at = own.divide(r);
    auto& sum = reinterpret_cast<Pack<T, n>*>(to)[r * row + begin + at];
    const auto& some = reinterpret_cast<const Pack<T, n>*>(from)[i];
    for (int e = 0; e < n; ++e) sum.of[e] = narrow<T>(widen(sum.of[e]) + widen(some.of[e]));
  }
};
/// (sum, x): sum and x from position ints[1] of dimension ints[0] on, in the storage of sum. Reads and writes as much
/// as x has.
template <class T>
void accumulate_slice(const Call& call) {
  const View &sum = call.results[0], &x = call.operands[1];
  const int dim = static_cast<int>(call.ints[0]);
  const Index inner = sum.extent(dim + 1, sum.rank), own = x.size[dim] * inner, row = sum.size[dim] * inner,
              begin = call.ints[1] * inner;
  const auto in_packs = [&]<int n>(std::integral_constant<int, n>) {
    launch_each(gpu(call).stream(), x.elements() / n,
                AddRows<T, n>{x.as<const T>(), sum.as<T>(), begin / n, row / n, Divisor(own / n)});
  };
  constexpr int n = pack_elements<T>;
  if (x.elements() == 0) return;
  if (own % n == 0 && row % n == 0 && begin % n == 0 && lies_at(x.data, 16) && lies_at(sum.data, 16))
    in_packs(std::integral_constant<int, n>{});
  else
    in_packs(std::integral_constant<int, 1>{});
}

/// Rows of `to` take those of `from` at a position that lies in the device's memory, as far as there is room. In units.
/// Reads and writes as much as `from` has.
template <class U>
struct WriteRows {
  const U* from;
  U* to;
  const int* position;
  const double* commit;
  Index inner, room;  // in one position; in a row of `to`
  Divisor row;        // of `from`

  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    Index r = i;
    const Index at = row.divide(r) + *position * inner;
    if (at >= 0 && at < room) to[r * room + at] = from[i];
  }
};
/// (memory, x, position): the memory, with x from `position` of dimension ints[0] on.
inline void write(const Call& call) {
  const View &memory = call.results[0], &x = call.operands[1];
  const int dim = static_cast<int>(call.ints[0]), size = bytes_of(memory.dtype);
  const Index inner = memory.extent(dim + 1, memory.rank) * size;
  const int unit = unit_of(address(x.data), address(memory.data), inner);
  with_unit(unit, [&]<class U>(U) {
    launch_each(gpu(call).stream(), x.elements() * size / unit,
                WriteRows<U>{x.as<const U>(), memory.as<U>(), call.operands[2].as<const int>(), call.commit,
                             inner / unit, memory.size[dim] * inner / unit, Divisor(x.size[dim] * inner / unit)});
  });
}

/// Tensors one behind the other, in one launch: a block copies a piece of one of them.
template <class U>
struct Bucket {
  static constexpr int threads = 256, piece = 4 * threads;
  U* to;
  int tensors;
  const U* from[max_node_operands];
  Index units[max_node_operands], begin[max_node_operands], first_block[max_node_operands];

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    int k = tensors - 1;
    while (block.index < first_block[k]) --k;
    const Index first = (block.index - first_block[k]) * piece, rest = units[k] - first;
    const U* const source = from[k] + first;
    U* const target = to + begin[k] + first;
    block.each(rest < piece ? rest : piece, [&](Index i) { target[i] = source[i]; });
  }
};
/// All operands one behind the other.
inline void bucket(const Call& call) {
  const int size = bytes_of(call.results[0].dtype);
  int unit = unit_of(address(call.results[0].data));
  for (const View& x : call.operands) unit = unit_of(unit, address(x.data), x.elements() * size);
  with_unit(unit, [&]<class U>(U) {
    Bucket<U> body{call.results[0].as<U>(), 0, {}, {}, {}, {}};
    Index begin = 0, blocks = 0;
    for (const View& x : call.operands) {
      const Index units = x.elements() * size / unit;
      const int k = body.tensors++;
      body.from[k] = x.as<const U>();
      body.units[k] = units;
      body.begin[k] = begin;
      body.first_block[k] = blocks;
      begin += units;
      blocks += blocks_of(units, body.piece);
    }
    launch(gpu(call).stream(), blocks, body);
  });
}

}  // namespace parallel::internals::cuda
