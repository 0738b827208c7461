// bf16 and f16 on the CPU: operands are widened to float, the kernel for float computes, and its results are rounded,
// once. Slower than float.
#pragma once
#include <algorithm>

#include <parallel/algebra/halves.hpp>
#include <parallel/device/cpu/scratch.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals::cpu {

/// Calls f for every operand and result of a call that is half a float.
template <class F>
void each_half(Call& call, F f) {
  for (View& v : call.operands)
    if (is_half(v.dtype)) f(v);
  for (View& v : call.results)
    if (is_half(v.dtype)) f(v);
}
/// The same call of a kernel for float.
inline Call with_float(const Call& call) {
  Call wide = call;
  each_half(wide, [](View& v) { v.dtype = DType::f32; });
  return wide;
}

inline void in_float_whole(const Call& call);

/// A piece of a view, from one of its elements on, of so many at most: it knows where it stands.
inline View piece_at(const View& v, std::int64_t begin, std::int64_t most) {
  View piece = v;
  piece.data = v.as<std::byte>() + begin * bytes_of(v.dtype);
  std::int64_t slice = v.elements();  // of one index of the dimension
  for (int d = 0; d < v.rank; ++d) {
    slice /= v.size[d];
    const std::int64_t index = begin / slice, left = v.size[d] - index;
    begin -= index * slice;
    piece.offset[d] += index;
    const std::int64_t fits = std::max<std::int64_t>(1, most / slice), pieces = (left + fits - 1) / fits;
    piece.size[d] = slice > most ? 1 : (left + pieces - 1) / pieces;  // of about the same size
    if (slice <= most) break;
  }
  return piece;
}
/// Calls the kernel that is the call's context on widened operands. What it updates in place it is given once.
inline void in_float(const Call& call) {
  const View& first = call.results[0];
  const std::int64_t n = first.elements(), most = account::cpu::most_widened;
  if (n <= most || call.operation == nullptr || !account::cpu::updates_in_pieces(call.operation->name))
    return in_float_whole(call);
  for (std::int64_t i = 0, count = 0; i < n; i += count) {
    Call some = call;
    for (View& v : some.results) v = piece_at(v, i, most);
    for (View& v : some.operands)
      if (v.rank == first.rank && std::equal(v.size, v.size + v.rank, first.size)) v = piece_at(v, i, most);
    count = some.results[0].elements();
    in_float_whole(some);
  }
}
inline void in_float_whole(const Call& call) {
  const auto room = [](const View& v) { return static_cast<std::size_t>(account::cpu::room_of_widened(v.elements())); };
  Call wide = call;
  std::size_t all = 0;
  each_half(wide, [&](const View& v) { all += room(v); });
  float* next = scratch<Purpose::widened, float>(all);
  each_half(wide, [&](View& v) {
    v.dtype = DType::f32;
    v.data = next;
    next += room(v);
  });
  for (int o = 0; o < call.operands.size(); ++o) {
    const View& from = call.operands[o];
    if (!is_half(from.dtype)) continue;
    halves::widen(from.dtype, from.data, wide.operands[o].as<float>(), from.elements());
    for (int r = 0; r < call.results.size(); ++r)
      if (call.results[r].data == from.data) wide.results[r].data = wide.operands[o].data;
  }
  wide.context = nullptr;
  reinterpret_cast<Kernel>(call.context)(wide);
  for (int r = 0; r < call.results.size(); ++r)
    if (const View& v = call.results[r]; is_half(v.dtype))
      halves::round(v.dtype, wide.results[r].as<float>(), v.data, v.elements());
}

}  // namespace parallel::internals::cpu
