// Parameters that a rank holds and nothing reads, as one that the model's function has forgotten.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// The numbers of the members that these are.
constexpr Vector<int> unread_parameters(const Plan& plan) {
  const GraphView& g = plan.graph;
  Vector<bool> read;
  read.resize(g.size_of_values(), false);
  for (const Node& n : g.nodes)
    for (const int o : n.operands) read[o] = true;
  Vector<int> unread;
  for (int i = 0; i < static_cast<int>(g.members.size()); ++i) {
    const Member& m = g.member(i);
    if (m.role == Role::parameter && !read[m.value] &&
        plan.storage[static_cast<std::size_t>(int{m.value})].block != MemoryBlock::none)
      unread.push_back(i);
  }
  return unread;
}

}  // namespace parallel::internals
