// A finished graph to read: the same whether it was built a moment ago or is a constant of the program.
#pragma once
#include <parallel/graph/structure.hpp>

namespace parallel {

struct GraphView {
  std::span<const Value> values{};
  std::span<const Node> nodes{};
  std::span<const int> order{};
  std::span<const Region> regions{};
  std::span<const Carry> carries{};
  std::span<const Stack> stacks{};
  std::span<const Origin> origins{};
  std::span<const Member> members{};
  std::span<const Name> scalars{};
  int scalar_value = -1;
  Outputs outputs{};
  int commit = -1;
  int misused = -1;

  constexpr GraphView() = default;
  constexpr GraphView(const Graph& g)
      : values(g.values), nodes(g.nodes), order(g.order), regions(g.regions), carries(g.carries), stacks(g.stacks), origins(g.origins),
        members(g.members), scalars(g.scalars), scalar_value(g.scalar_value), outputs(g.outputs), commit(g.commit), misused(g.misused) {}

  constexpr const Value& value(int i) const { return values[static_cast<std::size_t>(i)]; }
  constexpr const Node& node(int i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr const Region& region(int i) const { return regions[static_cast<std::size_t>(i)]; }
  constexpr const Member& member(int i) const { return members[static_cast<std::size_t>(i)]; }
  constexpr const Node& maker(int v) const { return node(value(v).node); }
  /// What of the user's program a node comes from; empty for what nobody wrote.
  constexpr Origin origin(const Node& n) const { return n.origin < 0 ? Origin{} : origins[static_cast<std::size_t>(n.origin)]; }
  constexpr int size_of_values() const { return static_cast<int>(values.size()); }

  /// Whether a region is `ancestor` or lies within it.
  constexpr bool inside(int r, int ancestor) const {
    for (; r >= 0; r = region(r).parent)
      if (r == ancestor) return true;
    return false;
  }
  /// The child of `outer` that holds `inner`, or -1 where `inner` does not lie within a child of `outer`.
  constexpr int child_towards(int outer, int inner) const {
    while (inner >= 0 && inner != outer) {
      if (region(inner).parent == outer) return inner;
      inner = region(inner).parent;
    }
    return -1;
  }
  /// How often a node of this region runs in one step.
  constexpr std::int64_t times(int r) const {
    std::int64_t n = 1;
    for (; r >= 0; r = region(r).parent) n *= region(r).count;
    return n;
  }
};

/// Whether a move sends anything on this mesh: an axis of extent 1 causes no call.
constexpr bool calls(const Node& node, const Mesh& mesh) {
  return node.transition.axes.size() > 0 && communicates(node.transition.collective) && mesh.extent(node.transition.axes) > 1;
}
/// Of the axes of a move those on which it sends on this mesh, as they have several ranks; where none has, all.
constexpr AxisList sending_axes(const AxisList& axes, const Mesh& mesh) {
  AxisList several;
  for (const Axis* a : axes)
    if (mesh.extent(a) > 1) several.push_back(a);
  return several.empty() ? axes : several;
}
/// Whether a node's result is its operand's storage on this mesh.
constexpr bool is_alias(const Node& node, const Mesh& mesh) {
  if (node.owns) return false;
  if (node.operation->aliases) return true;
  const Transition& t = node.transition;
  return t.axes.size() > 0 && (t.collective == Collective::retype || mesh.extent(t.axes) == 1);
}

}  // namespace parallel
