// The groups of ranks that a plan's collectives and messages are started on: one per set of axes, made once.
#pragma once
#include <map>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/plan/taking_part.hpp>

namespace parallel::internals {

/// Activations and gradients have groups of their own: where two stages send both the same way, neither waits for the
/// other's turn.
inline std::string name_of_group(const Transition& t) {
  return text(t.axes) + (t.along > 0              ? " activations"
                         : t.along < 0            ? " gradients"
                         : t.among == Placement{} ? ""
                                                  : " " + text(t.among));
}

template <Communicator World>
class Groups {
 public:
  /// Called by all ranks together. Where stages have events of their own, all make the groups of their common graph, in
  /// one order.
  Groups(const Plan& plan, World& world) {
    const GraphView& g = plan.graph;
    if (g.stages == nullptr) {
      for (const Event& e : plan.events)
        if (e.kind == EventKind::start && !copies(g.node(e.node).transition.collective))
          add(plan, world, g.node(e.node).transition);
    } else {
      for (const Node& n : g.nodes)
        if (!n.transition.axes.empty() && communicates(n.transition.collective) &&
            plan.mesh.extent(n.transition.axes) > 1) {
          add(plan, world, n.transition);
          if (n.transition.along != 0) messages_ = &of(n.transition);
        }
    }
  }
  World& of(const Transition& t) { return groups_.at(name_of_group(t)); }
  /// Lets messages between stages go on while this rank computes, where the backend needs to be called for that.
  void progress() {
    if constexpr (requires(World & w) { w.progress(); })
      if (messages_ != nullptr) messages_->progress();
  }
  template <class F>
  void each(F f) {
    for (auto& [name, group] : groups_) f(name, group);
  }

 private:
  void add(const Plan& plan, World& world, const Transition& t) {
    if (t.among == Placement{}) {
      auto made = groups_.find(name_of_group(t));
      if (made == groups_.end()) made = groups_.emplace(name_of_group(t), group(world, plan.mesh, t.axes)).first;
      if constexpr (requires { made->second.connect(1); }) {
        const Message m = message_of(t, plan.mesh);
        if (t.along != 0 || m) made->second.connect(m ? m.to - m.from : t.along);
      }
      return;
    }
    if (groups_.contains(name_of_group(t))) return;
    AxisList others;  // the ranks that take no part are groups of their own
    for (int i = 0; i < plan.mesh.count; ++i)
      if (!t.axes.contains(plan.mesh.axes[i].axis)) others.push_back(plan.mesh.axes[i].axis);
    const bool among = holds(t.among, plan.mesh.here, plan.mesh.extent(t.axes));
    groups_.emplace(name_of_group(t),
                    world.split(2 * plan.mesh.coordinate(world.rank(), others) + (among ? 1 : 0), plan.mesh.here));
  }

  std::map<std::string, World> groups_{};
  World* messages_ = nullptr;  // a group that has some
};

}  // namespace parallel::internals
