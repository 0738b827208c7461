// Boxes of elements from one tensor to another: copies, slices, paddings, transposes, packing; in units of up to 16
// bytes.
#pragma once
#include <algorithm>

#include <parallel/device/cpu/boxes.hpp>
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
  const U* from;
  U* to;
  int rank;
  Divisor extent[max_rank + 1];
  Index from_step[max_rank + 1], to_step[max_rank + 1];

  PARALLEL_DEVICE void operator()(Index rest) const {
    Index source = 0, target = 0;
    for (int d = rank - 1; d > 0; --d) {
      const Index here = extent[d].divide(rest);
      source += here * from_step[d];
      target += here * to_step[d];
    }
    to[target + rest * to_step[0]] = from[source + rest * from_step[0]];
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
    CopyBox<U> body{static_cast<const U*>(from), static_cast<U*>(to), rank, {}, {}, {}};
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
    launch_each(stream, elements * size / unit, body);
  });
}

/// Of two tensors.
inline void copy_box(const Call& call, const cpu::Box& box, const View& from, const View& to) {
  const int size = bytes_of(to.dtype);
  copy_box(gpu(call).stream(), box.walk, static_cast<const std::byte*>(from.data) + box.from * size,
           static_cast<std::byte*>(to.data) + box.to * size, size);
}

/// All elements, in their order.
inline void copy(const Call& call) {
  const View &from = call.operands[0], &to = call.results[0];
  if (from.data != to.data && to.elements() > 0)
    check(cudaMemcpyAsync(to.data, from.data, to.bytes(), cudaMemcpyDeviceToDevice, gpu(call).stream()), "a copy");
}
inline void zero(const Call& call) {
  const View& view = call.results[0];
  if (view.elements() > 0) check(cudaMemsetAsync(view.data, 0, view.bytes(), gpu(call).stream()), "zeros");
}

/// What two parts of one full tensor have in common; the rest of the result is zero.
inline void copy_overlap(const Call& call) {
  const cpu::Common both = cpu::in_common(call.operands[0], call.results[0]);
  if (!both.covers) zero(call);
  if (!both.empty) copy_box(call, both.box, call.operands[0], call.results[0]);
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
