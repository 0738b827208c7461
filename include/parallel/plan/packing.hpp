// Puts what lives at different times into the same room of one arena.
#pragma once
#include <cstdint>
#include <string_view>

#include <parallel/meta/list.hpp>

namespace parallel::internals {

/// What memory is for.
enum class Use : std::uint8_t {
  parameters,
  optimizer_state,
  inputs,
  parameters_in_use,
  gradients,
  activations,
  temporaries,
  buffers
};
inline constexpr int uses = 8;
constexpr std::string_view name_of(Use u) {
  constexpr std::string_view names[] = {"parameters", "optimizer state", "inputs",      "parameters in use",
                                        "gradients",  "activations",     "temporaries", "buffers"};
  return names[static_cast<int>(u)];
}

struct Allocation {
  int owner = -1;  ///< the value whose storage it is, or -1 - node for a collective's packing
  std::int64_t bytes = 0, offset = 0;
  int first = -1, last = -1;  ///< events between which it lives
  int home = 0;               ///< the region whose one iteration it lives in
  bool host = false;          ///< it lies in the host's memory
  Use use = Use::temporaries;
};

namespace packing {
/// The allocations of a memory that live, the largest first and equal ones in their order: runs of 1, 2, 4, ... are
/// merged.
constexpr Vector<int> by_size(const Vector<Allocation>& allocations, bool host) {
  Vector<int> sorted, merged;
  for (int i = 0; i < allocations.size(); ++i)
    if (allocations[i].first >= 0 && allocations[i].host == host) sorted.push_back(i);
  const int n = sorted.size();
  for (int run = 1; run < n; run *= 2) {
    merged.clear();
    for (int begin = 0; begin < n; begin += 2 * run) {
      const int middle = begin + run < n ? begin + run : n, end = begin + 2 * run < n ? begin + 2 * run : n;
      for (int i = begin, j = middle; i < middle || j < end;)
        merged.push_back(j == end || (i < middle && allocations[sorted[i]].bytes >= allocations[sorted[j]].bytes)
                             ? sorted[i++]
                             : sorted[j++]);
    }
    sorted = merged;
  }
  return sorted;
}
}  // namespace packing

/// Of one memory large allocations first, each at the lowest offset that is free while it lives. Returns the bytes of
/// its arena.
///
/// The loops are most of what a compiler does for a plan, and clang counts their statements and calls: hence pointers,
/// and few of both.
constexpr std::int64_t pack(Vector<Allocation>& allocations, bool host) {
  std::int64_t arena = 0;
  Vector<Allocation*> sorted_by_offset;
  sorted_by_offset.resize(allocations.size() + 1, nullptr);
  Allocation** const placed = &sorted_by_offset[0];
  int count = 0;
  for (const int i : packing::by_size(allocations, host)) {
    Allocation& a = allocations[i];
    std::int64_t offset = 0;
    for (int p = 0; p < count; ++p)
      if (const Allocation& b = *placed[p]; b.last >= a.first && a.last >= b.first && b.offset + b.bytes > offset) {
        if (b.offset >= offset + a.bytes) break;
        offset = b.offset + b.bytes;
      }
    a.offset = offset;
    int at = count++;
    for (; at > 0 && placed[at - 1]->offset > offset; --at) placed[at] = placed[at - 1];
    placed[at] = &a;
    if (offset + a.bytes > arena) arena = offset + a.bytes;
  }
  return arena;
}

}  // namespace parallel::internals

namespace parallel {
using internals::Use;
}  // namespace parallel
