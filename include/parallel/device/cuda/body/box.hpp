// Boxes of elements from one tensor to another: copies, slices, paddings, transposes, packing; in units of up to 16
// bytes.
#pragma once
#include <algorithm>

#include <parallel/device/cuda/body/map.hpp>

namespace parallel::internals::cuda {

/// Units of `bytes` bytes, copied whatever they mean.
template <int bytes>
struct alignas(bytes) Unit {
  using Word = std::conditional_t<bytes % 4 == 0, std::uint32_t, std::uint8_t>;
  Word of[static_cast<std::size_t>(bytes) / sizeof(Word)];
};

/// The largest unit that divides all of these numbers of bytes: addresses, extents, steps.
template <class... Bytes>
int unit_of(Bytes... bytes) {
  const std::uintptr_t all = (std::uintptr_t{16} | ... | static_cast<std::uintptr_t>(bytes));
  return static_cast<int>(all & (~all + 1));
}
inline std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
/// Calls f(Unit<bytes>{}).
template <class F>
void with_unit(int bytes, F f) {
  switch (bytes) {
    case 16: return f(Unit<16>{});
    case 8: return f(Unit<8>{});
    case 4: return f(Unit<4>{});
    case 2: return f(Unit<2>{});
    default: return f(Unit<1>{});
  }
}

/// to[i . to_step] = from[i . from_step] for every index of the box; all steps in units. Every element is read once and
/// written once.
template <class U>
struct CopyBox {
  static constexpr int threads = 256;
  const U* from;
  U* to;
  Index units;
  int rank;
  Divisor extent[max_rank + 1];
  Index from_step[max_rank + 1], to_step[max_rank + 1];

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(threads, [&](Index thread) {
      Index rest = block.index * threads + thread, source = 0, target = 0;
      if (rest >= units) return;
      for (int d = rank - 1; d > 0; --d) {
        const Index here = extent[d].divide(rest);
        source += here * from_step[d];
        target += here * to_step[d];
      }
      to[target + rest * to_step[0]] = from[source + rest * from_step[0]];
    });
  }
};

/// Copies a box between places in two tensors. The walk's steps are in elements of `size` bytes, from and to.
inline void copy_box(cudaStream_t stream, const Walk<2>& walk, const void* from, void* to, int size) {
  const int rank = std::max(walk.rank(), 1);
  Index elements = 1;
  for (int d = 0; d < rank; ++d) elements *= walk.extent(d);
  if (elements == 0) return;
  const bool rows = walk.step(0) == 1 && walk.step(1) == 1;
  int bytes = unit_of(address(from), address(to), rows ? walk.extent() * size : size);
  for (int d = rows ? 1 : 0; d < rank; ++d) bytes = unit_of(bytes, walk.step(0, d) * size, walk.step(1, d) * size);
  const int unit = rows ? bytes : std::min(bytes, size);
  with_unit(unit, [&]<class U>(U) {
    CopyBox<U> body{static_cast<const U*>(from), static_cast<U*>(to), elements * size / unit, rank, {}, {}, {}};
    for (int d = 0; d < rank; ++d) {
      const int enclosing = rank - 1 - d;
      body.extent[d] = Divisor(walk.extent(enclosing));
      body.from_step[d] = walk.step(0, enclosing) * size / unit;
      body.to_step[d] = walk.step(1, enclosing) * size / unit;
    }
    if (rows) {
      body.extent[rank - 1] = Divisor(walk.extent() * size / unit);
      body.from_step[rank - 1] = body.to_step[rank - 1] = 1;
    } else if (unit < size) {
      // an element is several units
      body.rank = rank + 1;
      body.extent[rank] = Divisor(size / unit);
      body.from_step[rank] = body.to_step[rank] = 1;
    }
    launch(stream, blocks_of(body.units, body.threads), body);
  });
}

inline std::size_t bytes_of(const View& view) {
  return static_cast<std::size_t>(view.elements() * parallel::bytes_of(view.dtype));
}

/// All elements, in their order.
inline void copy(const Call& call) {
  const View &from = call.operands[0], &to = call.results[0];
  if (from.data != to.data && to.elements() > 0)
    check(cudaMemcpyAsync(to.data, from.data, bytes_of(to), cudaMemcpyDeviceToDevice, gpu(call).stream()), "a copy");
}
inline void zero(const View& view, cudaStream_t stream) {
  if (view.elements() > 0) check(cudaMemsetAsync(view.data, 0, bytes_of(view), stream), "zeros");
}
inline void zero(const Call& call) { zero(call.results[0], gpu(call).stream()); }

/// What two parts of one full tensor have in common; the rest of the result is zero.
inline void copy_overlap(const Call& call) {
  const View &from = call.operands[0], &to = call.results[0];
  Index source = 0, target = 0;
  const cpu::Steps<max_rank> from_strides = strides(from), to_strides = strides(to);
  Walk<2> walk;
  bool covers = true, empty = to.elements() == 0;
  for (int d = 0; d < to.rank; ++d) {
    const Index begin = std::max(from.offset[d], to.offset[d]),
                end = std::min(from.offset[d] + from.size[d], to.offset[d] + to.size[d]);
    empty = empty || end <= begin;
    walk.add(std::max<Index>(end - begin, 0), {from_strides[d], to_strides[d]});
    source += (begin - from.offset[d]) * from_strides[d];
    target += (begin - to.offset[d]) * to_strides[d];
    covers = covers && end - begin == to.size[d];
  }
  if (!covers) zero(call);
  const int size = parallel::bytes_of(to.dtype);
  if (!empty)
    copy_box(gpu(call).stream(), walk, static_cast<const std::byte*>(from.data) + source * size,
             static_cast<std::byte*>(to.data) + target * size, size);
}

/// [outer][n][inner] elements to [n][outer][inner].
inline void pack(cudaStream_t stream, const void* from, void* to, Index outer, Index n, Index inner, int size) {
  Walk<2> walk;
  walk.add(n, {inner, outer * inner});
  walk.add(outer, {n * inner, inner});
  walk.add(inner, {1, 1});
  copy_box(stream, walk, from, to, size);
}

}  // namespace parallel::internals::cuda
