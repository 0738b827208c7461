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

constexpr Fault check(const GraphView& g, const Mesh& mesh, std::span<const GraphView> beside = {}) {
  if (g.misused >= 0) return {{g.member(g.misused).role == Role::state ? Reason::remembered : Reason::outside_layers, {g.member(g.misused).layers}}};
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
