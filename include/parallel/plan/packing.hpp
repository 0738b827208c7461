// Puts what lives at different times into the same room of one arena.
#pragma once
#include <cstdint>
#include <string_view>

#include <parallel/meta/list.hpp>

namespace parallel {

/// What memory is for.
enum class Use : std::uint8_t { parameters, optimizer_state, inputs, gradients, activations, temporaries, buffers };
inline constexpr int uses = 7;
constexpr std::string_view name_of(Use u) {
  constexpr std::string_view names[] = {"parameters", "optimizer state", "inputs", "gradients", "activations", "temporaries", "buffers"};
  return names[static_cast<int>(u)];
}

struct Allocation {
  int owner = -1;  ///< the value whose storage it is, or -1 - node for a collective's packing
  std::int64_t bytes = 0, offset = 0;
  int first = -1, last = -1;  ///< events between which it lives
  int home = 0;               ///< the region whose one iteration it lives in
  Use use = Use::temporaries;
};

namespace packing {
/// The allocations that live, the largest first and equal ones in their order: runs of 1, 2, 4, ... are merged.
constexpr Vector<int> by_size(const Vector<Allocation>& allocations) {
  Vector<int> sorted, merged;
  for (int i = 0; i < allocations.size(); ++i)
    if (allocations[i].first >= 0) sorted.push_back(i);
  const int n = sorted.size();
  for (int run = 1; run < n; run *= 2) {
    merged.clear();
    for (int begin = 0; begin < n; begin += 2 * run) {
      const int middle = begin + run < n ? begin + run : n, end = begin + 2 * run < n ? begin + 2 * run : n;
      for (int i = begin, j = middle; i < middle || j < end;)
        merged.push_back(j == end || (i < middle && allocations[sorted[i]].bytes >= allocations[sorted[j]].bytes) ? sorted[i++] : sorted[j++]);
    }
    sorted = merged;
  }
  return sorted;
}
}  // namespace packing

/// Large allocations first, each at the lowest offset that is free while it lives. Returns the bytes of the arena.
constexpr std::int64_t pack(Vector<Allocation>& allocations) {
  std::int64_t arena = 0;
  Vector<int> placed;  // sorted by offset
  for (const int i : packing::by_size(allocations)) {
    Allocation& a = allocations[i];
    std::int64_t offset = 0;
    for (const int p : placed) {
      const Allocation& b = allocations[p];
      if (b.last < a.first || a.last < b.first) continue;
      if (b.offset >= offset + a.bytes) break;
      if (b.offset + b.bytes > offset) offset = b.offset + b.bytes;
    }
    a.offset = offset;
    placed.push_back(i);
    for (int at = placed.size() - 1; at > 0 && allocations[placed[at - 1]].offset > offset; --at) placed[at] = placed[at - 1], placed[at - 1] = i;
    if (offset + a.bytes > arena) arena = offset + a.bytes;
  }
  return arena;
}

}  // namespace parallel
