// Whether ranks that take the same part of an input were given the same (plan/agreement.hpp).
#pragma once
#include <string>

#include <parallel/run/prints.hpp>

namespace parallel::internals {

class SharedInputs {
 public:
  /// Of a plan that outlives this.
  explicit SharedInputs(const Plan& plan)
      : plan_(plan), prints_(plan, [&](const Member& m) { return is_shared_input(m, plan.mesh); }) {
    static_assert(sizeof(Print) == Agreement::print_bytes);
  }

  /// Called by all ranks where a step begins. Throws Mismatch (exit code 76) on every rank, with the inputs, the axes
  /// on which they are to be alike, and who has what.
  template <Communicator World, class Device>
  void compare(World& world, RankMemory<Device>& memory, std::int64_t step) {
    if (prints_.alike(world, memory, "fingerprints of inputs")) return;
    const GraphView& g = plan_.graph;
    const std::string words = prints_.difference();
    std::string axes;
    for (const int m : prints_.members())
      for (int i = 0; i < plan_.mesh.count; ++i)
        if (const Extent& e = plan_.mesh.axes[i];
            e.size > 1 && !g.member(m).type.layout.on(e.axis).split() && words.find(g.path(m)) != std::string::npos)
          axes += (axes.empty() ? "; alike are to be " : ", ") + std::string(g.path(m)) + " on " +
                  std::string(e.axis->text());
    throw Mismatch("before step " + std::to_string(step) +
                       " ranks that take the same part of an input were given other numbers: " + words + axes +
                       "; draw, or seed what draws, alike on all ranks, each of which takes its part of the whole",
                   world.size());
  }

 private:
  const Plan& plan_;
  Prints prints_;
};

}  // namespace parallel::internals
