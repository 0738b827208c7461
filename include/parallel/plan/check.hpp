// What can be known of a program only with a mesh: that its axes are used and that it divides what they split.
#pragma once
#include <span>

#include <parallel/plan/view.hpp>

namespace parallel {

/// A refusal with what it is about.
struct Fault {
  Refusal refusal{};
  int value = -1;  ///< the tensor that does not divide
  int dim = 0;
  int node = -1;   ///< the move that nobody wrote
};

/// Whether any annotation of a program names an axis.
constexpr bool names(const GraphView& g, const Axis* axis) {
  for (const Value& v : g.values)
    if (!(v.type.layout.on(axis) == Invariant)) return true;
  return false;
}

/// Every axis of a program and its mesh, once.
constexpr Vector<const Axis*> axes_of(const GraphView& g, const Mesh& mesh) {
  Vector<const Axis*> axes;
  const auto add = [&](const Axis* axis) {
    for (const Axis* a : axes)
      if (a == axis) return;
    axes.push_back(axis);
  };
  for (int i = 0; i < mesh.count; ++i) add(mesh.axes[i].axis);
  for (const Value& v : g.values) {
    for (const Dim& d : v.type.layout.dims)
      for (const Axis* a : d) add(a);
    for (const Placed& p : v.type.layout.others) add(p.axis);
  }
  return axes;
}

/// Why `Graph::misused` is refused.
constexpr Refusal misuse(const Member& member) {
  if (member.path.empty()) return {Reason::no_member, {member.type.layout.rank()}};
  return {member.role == Role::state ? Reason::remembered : Reason::outside_layers, {member.layers}};
}

constexpr Fault check(const GraphView& g, const Mesh& mesh, std::span<const GraphView> beside = {}) {
  if (const Axis* axis = namesake(axes_of(g, mesh))) return {{Reason::same_name, {2}, axis}};
  if (g.misused >= 0) return {misuse(g.member(g.misused))};
  for (int i = 0; i < mesh.count; ++i) {
    const Extent& e = mesh.axes[i];
    if (e.size < 1) return {{Reason::bad_extent, {e.size}, e.axis}};
    for (int j = 0; j < i; ++j)
      if (mesh.axes[j].axis == e.axis) return {{Reason::axis_twice, {2}, e.axis}};
    bool used = names(g, e.axis);
    for (const GraphView& other : beside) used = used || names(other, e.axis);
    if (!used) return {{Reason::axis_unused, {e.size}, e.axis}};
  }
  for (int v = 0; v < g.size_of_values(); ++v) {
    const Layout& layout = g.value(v).type.layout;
    for (int d = 0; d < layout.rank(); ++d) {
      const std::int64_t n = degree(layout.dims[d], mesh);
      if (layout.dims[d].size % n != 0) return {{Reason::not_divisible, {layout.dims[d].size, n}, layout.dims[d].axes[layout.dims[d].count - 1]}, v, d};
    }
  }
  return {};
}

}  // namespace parallel
