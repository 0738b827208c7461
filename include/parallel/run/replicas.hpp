// Whether parameters and optimizer state that several ranks hold are alike.
#pragma once
#include <parallel/run/plan_facts.hpp>
#include <parallel/run/prints.hpp>

namespace parallel::internals {

/// Compares parameters and state between the ranks that hold the same part of them, by one exchange of 16 bytes for
/// each member and rank; reads all of the rank's members. Called by all ranks of `world`. Throws Mismatch (exit code
/// 76) on every rank, with the members that differ and who has what: a bit that flipped in one, a sum that another
/// library made.
template <Communicator World, class Device>
void compare_replicas(World& world, RankMemory<Device>& memory, Here here = {}) {
  const Plan& plan = memory.plan();
  if (world.size() == 1 || plan.graph.members.empty()) return;
  agree(world, {fact_of(plan)}, "a comparison of replicas", here);
  if (Prints prints(plan, [](const Member& m) { return m.role != Role::input; });
      !prints.alike(world, memory, "fingerprints of parameters"))
    throw Mismatch(
        "parallel::compare_replicas: ranks that hold the same part of a tensor have other numbers in it: " +
            prints.difference() +
            "; memory was damaged, or ranks set or computed them differently: go on from what was saved before",
        world.size());
}

}  // namespace parallel::internals

namespace parallel {
using internals::compare_replicas;
}  // namespace parallel
