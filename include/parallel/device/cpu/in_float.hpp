// bf16 on the CPU: operands are widened to float, the kernel for float computes, and its results are rounded, once.
// Slower than float.
#pragma once
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

/// Calls the kernel that is the call's context on widened operands. What it updates in place it is given once.
inline void in_float(const Call& call) {
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
    for (std::int64_t i = 0; i < from.elements(); ++i)
      wide.operands[o].as<float>()[i] = static_cast<float>(from.as<const bfloat16>()[i]);
    for (int r = 0; r < call.results.size(); ++r)
      if (call.results[r].data == from.data) wide.results[r].data = wide.operands[o].data;
  }
  wide.context = nullptr;
  reinterpret_cast<Kernel>(call.context)(wide);
  for (int r = 0; r < call.results.size(); ++r)
    if (const View& v = call.results[r]; v.dtype == DType::bf16)
      for (std::int64_t i = 0; i < v.elements(); ++i) v.as<bfloat16>()[i] = bfloat16(wide.results[r].as<float>()[i]);
}

}  // namespace parallel::internals::cpu
