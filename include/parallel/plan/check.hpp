// What can be known of a program only with a mesh: that its axes are used and that it divides what they split.
#pragma once
#include <span>

#include <parallel/operation/attention.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/plan/mistake.hpp>
#include <parallel/plan/view.hpp>
#include <parallel/program/asynchronous.hpp>

namespace parallel::internals {

/// A refusal with what it is about.
struct Fault {
  Refusal refusal{};
  int value = -1;  ///< the tensor that does not divide
  int dim = 0;
  int node = -1;  ///< the move that nobody wrote, or what a program is unfit for
};

/// In how many slices, apart from each other, a stage has its part of a dimension: of layers the schedule's chunks.
constexpr int chunks_of(const GraphView& g, const Dim& dim, const Mesh& mesh) {
  return g.stages != nullptr && dim.split_by(g.stages) && mesh.extent(g.stages) > 1 ? g.schedule->chunks : 1;
}
/// The same, and of layers over stages also the schedule's chunks, and in each as many as one iteration takes.
constexpr std::int64_t slices(const GraphView& g, const Dim& dim, const Mesh& mesh) {
  const bool staged = g.stages != nullptr && dim.split_by(g.stages);
  return internals::slices(dim, mesh) * chunks_of(g, dim, mesh) * (staged ? g.staged_layers().blocks : 1);
}

/// Whether a mesh with so many ranks on an axis divides everything that the axis splits.
constexpr bool divides(const GraphView& g, Mesh mesh, const Axis* axis, std::int64_t ranks) {
  for (int i = 0; i < mesh.count; ++i)
    if (mesh.axes[i].axis == axis) mesh.axes[i].size = static_cast<int>(ranks);
  for (const Value& v : g.values)
    for (const Dim& d : v.type.layout.dims)
      for (int i = 0; i < d.count; ++i)
        if (d.axes[i] == axis && d.size % slices(g, d, mesh) != 0) return false;
  return true;
}
inline constexpr std::int64_t most_named = 1024;  ///< extents above are valid too, but not named

/// The next extent of an axis below (step -1) or above (1) the mesh's that divides `size` and everything else; 0: there
/// is none.
constexpr std::int64_t next_valid(const GraphView& g, const Mesh& mesh, const Axis* axis, int step, std::int64_t size) {
  for (std::int64_t n = mesh.extent(axis) + step; n >= 1 && n <= most_named; n += step)
    if (size % n == 0 && divides(g, mesh, axis, n)) return n;
  return 0;
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

/// Why gradients are lost: they are computed in f16, and nothing scales them.
constexpr Refusal unscaled(const GraphView& g) {
  bool scaled = false;
  for (const Name& name : g.scalars) scaled = scaled || g.text(name) == "loss_scale";
  for (const Value& v : g.values)
    if (!scaled && v.type.dtype == DType::f16 && v.kind == Kind::activation && v.again < 0 &&
        g.node(v.node).phase == Phase::backward)
      return {Reason::unscaled, {bytes_of(v.type.dtype)}};
  return {};
}

/// The first node for which a program is `unfit`, or -1.
constexpr int unfit_node(const GraphView& g) {
  if (g.unfit == Reason::recompute_words) return -1;  // a word of Layers, of which there is no node
  for (int i = 0; i < static_cast<int>(g.nodes.size()); ++i) {
    const Node& n = g.node(i);
    const bool lost = n.origin >= 0 && n.operation == g.origin(n).operation && n.operation->gradient == nullptr &&
                      n.is(Structural::none) && g.value(n.result).differentiable;
    bool trained = false;
    for (const int o : n.operands) trained = trained || g.value(o).differentiable;
    const bool misshapen = n.origin >= 0 && n.operation->gradient != nullptr && trained && n.results > 0 &&
                           n.phase == Phase::forward && g.value(n.result).type.dtype != DType::i32 &&
                           !g.value(n.result).differentiable;
    const bool attends = n.operation == &operation::attention || n.operation == &operation::ring_attention;
    const double probability = n.reals[attends ? 1 : 0];
    const bool improbable =
        ((n.operation == &operation::dropout || attends) && !(probability >= 0 && probability < 1)) ||
        (n.operation == &operation::negative_log_likelihood && !(probability >= 0 && probability <= 1));
    const bool of_gradient = g.unfit == Reason::gradient_shape || g.unfit == Reason::gradient_operand;
    if (g.unfit == Reason::no_gradient ? lost || misshapen : of_gradient ? misshapen : improbable) return i;
  }
  return -1;
}
/// Why a program is `unfit`, and where it was said.
constexpr Fault unfit(const GraphView& g) {
  Fault fault{{g.unfit}};
  fault.node = unfit_node(g);
  if (fault.node >= 0 && g.node(fault.node).origin >= 0)
    fault.refusal.figures[0] = g.origin(g.node(fault.node)).source.line;
  return fault;
}

/// What is wrong with stages, their axis, or the schedule.
constexpr Refusal misplaced_stages(const GraphView& g, const Mesh& mesh) {
  const int stages = mesh.extent(g.stages);
  if (mesh.here < 0 || mesh.here >= stages) return {Reason::no_such_stage, {mesh.here, stages}, g.stages};
  int applied = 0;
  for (const Region& r : g.regions) applied += r.staged && !r.reversed ? 1 : 0;
  if (applied > 1) return {Reason::staged_twice, {applied}, g.stages};
  if (const Refusal refusal = asynchronous::shared_weights(g)) return refusal;
  for (const Member& m : g.members) {
    const Layout& layout = m.type.layout;
    for (int d = 0; d < layout.rank(); ++d)
      if (layout.dims[d].split_by(g.stages) && (d > 0 || m.layers == 0 || m.role == Role::input))
        return {Reason::stages_named, {layout.rank()}, g.stages};
    for (const Placed& p : layout.others)
      if (p.axis == g.stages && p.placement.kind != PlacementKind::at)
        return {Reason::stages_named, {layout.rank()}, g.stages};
  }
  return {};
}

constexpr Fault check(const GraphView& g, const Mesh& mesh, std::span<const GraphView> beside = {}) {
  if (const Axis* axis = namesake(axes_of(g, mesh))) return {{Reason::same_name, {2}, axis}};
  const Axis* const of_stages = g.unfit == Reason::stages_named ? g.stages : nullptr;
  if (g.misused >= 0 && g.unfit != Reason::none)
    return {{g.unfit, {g.member(g.misused).type.layout.rank()}, of_stages}};
  if (g.misused >= 0) return {misuse(g.member(g.misused))};
  if (g.unfit != Reason::none) return unfit(g);
  if (const Refusal refusal = unscaled(g)) return {refusal};
  if (const auto [reason, node] = mistake(g); node >= 0)
    return {.refusal = {reason, {g.node(node).origin >= 0 ? g.origin(g.node(node)).source.line : 0}}, .node = node};
  for (int i = 0; i < mesh.count; ++i) {
    const Extent& e = mesh.axes[i];
    bool host = e.axis == &axes::host;
    for (const Value& v : g.values) host = host || v.type.layout.on(e.axis) == OnHost;  // read from an object
    if (host) return {{Reason::host_is_memory, {e.size}, e.axis}};
    if (e.size < 1) return {{Reason::bad_extent, {e.size}, e.axis}};
    for (int j = 0; j < i; ++j)
      if (mesh.axes[j].axis == e.axis) return {{Reason::axis_twice, {2}, e.axis}};
    bool used = names(g, e.axis);
    for (const GraphView& other : beside) used = used || names(other, e.axis);
    if (!used) return {{Reason::axis_unused, {e.size}, e.axis}};
  }
  if (g.stages != nullptr)
    if (const Refusal refusal = misplaced_stages(g, mesh)) return {refusal};
  for (int v = 0; v < g.size_of_values(); ++v) {
    const Layout& layout = g.value(v).type.layout;
    for (const Placed& p : layout.others)
      if (const int n = mesh.extent(p.axis); !has_holders(p.placement, n))
        return {.refusal = {Reason::held_nowhere, {n}, p.axis}, .value = v};
    for (int d = 0; d < layout.rank(); ++d) {
      const std::int64_t n = slices(g, layout.dims[d], mesh);
      if (layout.dims[d].size % n == 0 || (mesh.cut.axis != nullptr && layout.dims[d].split_by(mesh.cut.axis)))
        continue;
      const Axis* axis =
          layout.dims[d].count == 0 ? layout.dims[d].ordered_for : layout.dims[d].axes[layout.dims[d].count - 1];
      const std::int64_t extent = layout.dims[d].size;
      if (g.stages != nullptr && layout.dims[d].split_by(g.stages) && extent % degree(layout.dims[d], mesh) == 0)
        return {{Reason::stage_share,
                 {extent, mesh.extent(g.stages), chunks_of(g, layout.dims[d], mesh), g.staged_layers().blocks},
                 g.stages},
                v,
                d};
      return {{Reason::not_divisible,
               {extent, n, next_valid(g, mesh, axis, -1, extent), next_valid(g, mesh, axis, 1, extent)},
               axis},
              v,
              d};
    }
  }
  return {};
}

}  // namespace parallel::internals
