// bf16 on the CPU: operands are widened to float, the kernel for float computes, and its results are rounded, once.
// Slower than float.
#pragma once
#include <algorithm>

#include <parallel/device/cpu/scratch.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals::cpu {

/// Calls f for every operand and result of a call that is bf16.
template <class F>
void each_bf16(Call& call, F f) {
  for (View& v : call.operands)
    if (v.dtype == DType::bf16) f(v);
  for (View& v : call.results)
    if (v.dtype == DType::bf16) f(v);
}
/// The same call of a kernel for float.
inline Call with_float(const Call& call) {
  Call wide = call;
  each_bf16(wide, [](View& v) { v.dtype = DType::f32; });
  return wide;
}

inline void in_float_whole(const Call& call);

/// Sixteen at a time, as compilers vectorise it.
inline void widened(const bfloat16* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) to[i + j] = static_cast<float>(from[i + j]);
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
inline void rounded(const float* from, bfloat16* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) to[i + j] = bfloat16(from[i + j]);
  for (; i < n; ++i) to[i] = bfloat16(from[i]);
}

/// Elements from one on, of a view or of its whole.
inline View some_of(const View& v, std::int64_t begin, std::int64_t count) {
  View some = v;
  some.data = v.as<std::byte>() + begin * bytes_of(v.dtype);
  some.rank = 1;
  some.size[0] = count;
  return some;
}
/// Calls the kernel that is the call's context on widened operands. What it updates in place it is given once.
inline void in_float(const Call& call) {
  const std::int64_t n = call.results[0].elements(), most = account::cpu::most_widened;
  if (n <= most || call.operation == nullptr || !account::cpu::updates_in_pieces(call.operation->name))
    return in_float_whole(call);
  for (std::int64_t i = 0; i < n; i += most) {
    Call some = call;
    for (View& v : some.results) v = some_of(v, i, std::min(most, n - i));
    for (int o = 0; o < call.operands.size(); ++o)
      if (call.operands[o].elements() == n && call.operands[o].rank == call.results[0].rank)
        some.operands[o] = some_of(call.operands[o], i, std::min(most, n - i));
    in_float_whole(some);
  }
}
inline void in_float_whole(const Call& call) {
  const auto room = [](const View& v) { return static_cast<std::size_t>(account::cpu::room_of_widened(v.elements())); };
  Call wide = call;
  std::size_t all = 0;
  each_bf16(wide, [&](const View& v) { all += room(v); });
  float* next = scratch<Purpose::widened, float>(all);
  each_bf16(wide, [&](View& v) {
    v.dtype = DType::f32;
    v.data = next;
    next += room(v);
  });
  for (int o = 0; o < call.operands.size(); ++o) {
    const View& from = call.operands[o];
    if (from.dtype != DType::bf16) continue;
    widened(from.as<const bfloat16>(), wide.operands[o].as<float>(), from.elements());
    for (int r = 0; r < call.results.size(); ++r)
      if (call.results[r].data == from.data) wide.results[r].data = wide.operands[o].data;
  }
  wide.context = nullptr;
  reinterpret_cast<Kernel>(call.context)(wide);
  for (int r = 0; r < call.results.size(); ++r)
    if (const View& v = call.results[r]; v.dtype == DType::bf16)
      rounded(wide.results[r].as<float>(), v.as<bfloat16>(), v.elements());
}

}  // namespace parallel::internals::cpu
