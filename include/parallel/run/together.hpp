// Calls of one operation that follow each other, for a device that computes them at once: updates of all parameters are
// one kernel's launch.
#pragma once
#include <cstdint>
#include <vector>

#include <parallel/run/instruction.hpp>

namespace parallel {

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

/// Gives the first of some instructions the calls of all, where nothing stands between them and no loop moves their
/// addresses. Nothing is reordered.
template <class Group>
void bring_together(std::vector<Instruction<Group>>& all, const GraphView& g) {
  const auto can = [](const Instruction<Group>& i) {
    return i.kind == EventKind::compute && i.call.together.kernel != nullptr && i.following.empty() && i.layers == 0 &&
           i.micro_batches == 0;
  };
  const auto joins = [&](const Instruction<Group>& i, const Instruction<Group>& first) {
    if (!can(i) || g.node(i.node).operation != g.node(first.node).operation || !same_types(i.call, first.call))
      return false;
    for (const Call& call : first.together)
      if (!first.call.together.in_order && (disturbs(call, i.call) || disturbs(i.call, call))) return false;
    return true;
  };
  for (std::size_t at = 0; at < all.size();) {
    Instruction<Group>& first = all[at++];
    if (!can(first)) continue;
    first.together = {first.call};
    while (at < all.size() && joins(all[at], first)) first.together.push_back(all[at++].call);
    if (first.together.size() == 1) first.together.clear();
  }
}

}  // namespace parallel
