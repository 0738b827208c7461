// Calls of one operation that follow each other, for a device that computes them at once: updates of all parameters are
// one kernel's launch.
#pragma once
#include <cstdint>
#include <vector>

#include <parallel/run/instruction.hpp>

namespace parallel::internals {

/// Whether the first view's memory has bytes in common with the second's.
inline bool overlap(const View& a, const View& b) {
  const auto begin = [](const View& v) { return reinterpret_cast<std::uintptr_t>(v.data); };
  const auto end = [&](const View& v) {
    return begin(v) + static_cast<std::uintptr_t>(v.elements() * bytes_of(v.dtype));
  };
  return begin(a) < end(b) && begin(b) < end(a);
}
/// Whether a call writes what another one reads or writes: the memory of a value that is needed no more may be
/// another's.
inline bool disturbs(const Call& writer, const Call& other) {
  for (const View& written : writer.results) {
    for (const View& v : other.operands)
      if (overlap(written, v)) return true;
    for (const View& v : other.results)
      if (overlap(written, v)) return true;
  }
  return false;
}
inline bool same_types(const Call& a, const Call& b) {
  bool same = a.operands.size() == b.operands.size() && a.results.size() == b.results.size();
  for (int o = 0; same && o < a.operands.size(); ++o) same = a.operands[o].dtype == b.operands[o].dtype;
  for (int r = 0; same && r < a.results.size(); ++r) same = a.results[r].dtype == b.results[r].dtype;
  return same;
}

/// Gives the first of some instructions the calls of all, where the device computes them at once, nothing stands
/// between them and no loop moves their addresses. Nothing is reordered.
template <class Group, class Device>
void bring_together(std::vector<Instruction<Group>>& all, const Device& device) {
  const auto can = [](const Instruction<Group>& i) {
    return i.kind == EventKind::compute && !i.on_host && i.calls.size() == 1 && i.following.empty() && i.layers == 0 &&
           i.micro_batches == 0;
  };
  const auto joins = [&](const Instruction<Group>& i, const Instruction<Group>& first) {
    if (!can(i)) return false;
    const Call &call = i.calls[0], &of_first = first.calls[0];
    if (call.operation != of_first.operation || !same_types(call, of_first)) return false;
    for (const Call& other : first.at_once.calls)
      if (!first.at_once.kernel.in_order && (disturbs(other, call) || disturbs(call, other))) return false;
    return true;
  };
  for (std::size_t at = 0; at < all.size();) {
    Instruction<Group>& first = all[at++];
    if (!can(first)) continue;
    Call call = first.calls[0];
    first.at_once.kernel = device.fused({&call, 1});
    if (!first.at_once.kernel) continue;
    first.at_once.calls = {call};
    while (at < all.size() && joins(all[at], first)) first.at_once.calls.push_back(all[at++].calls[0]);
    if (first.at_once.calls.size() == 1) first.at_once.calls.clear();
  }
}

}  // namespace parallel::internals
