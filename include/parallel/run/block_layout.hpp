// What a rank's block of parameters or of remembered tensors holds, and in which order. Programs may share a block that
// is the same for both.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/algebra/notation.hpp>
#include <parallel/question/text.hpp>
#include <parallel/run/failure.hpp>

namespace parallel::internals {

/// Lines to read; two programs may share a block where theirs are equal.
using BlockLayout = std::vector<std::string>;

/// How much of the paths of a role's members is the name of one member that has all of them, with its point: of
/// `struct Watched { Model model; ... }` that of `model.`. A wrapper has what is wrapped, whatever it calls it.
inline std::size_t wrapped_in(const GraphView& g, Role role) {
  std::string_view common;
  bool first = true;
  for (const Member& m : g.members) {
    if (m.role != role) continue;
    const std::string_view path = g.path(m);
    if (std::exchange(first, false)) common = path.substr(0, path.rfind('.') + 1);
    common = common.substr(
        0, static_cast<std::size_t>(std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first -
                                    common.begin()));
  }
  common = common.substr(0, std::min(common.find('*'), common.size()));  // layers are no member
  return common.rfind('.') + 1;
}

/// The mesh, the layers that this stage has, and each member of a role with its type, as the model itself calls it.
/// Axes of one rank, which split nothing, are left out.
inline BlockLayout block_layout(const Plan& plan, Role role) {
  const GraphView& g = plan.graph;
  Mesh mesh;
  for (int i = 0; i < plan.mesh.count; ++i)
    if (plan.mesh.axes[i].size > 1) mesh.axes[mesh.count++] = plan.mesh.axes[i];
  BlockLayout lines{text(mesh)};
  if (g.stages != nullptr && plan.mesh.extent(g.stages) > 1)
    lines.push_back("layers " + staged_layers(plan) + " on stage " + std::to_string(plan.mesh.here));
  const std::size_t wrapped = wrapped_in(g, role);
  for (const Member& m : g.members) {
    if (m.role != role || plan.storage[static_cast<std::size_t>(m.value)].block == MemoryBlock::none) continue;
    Type type = m.type;
    AxisList axes;
    type.layout.collect(axes);
    for (const Axis* a : axes)
      if (plan.mesh.extent(a) == 1 && !(type.layout.on(a) == OnHost)) type.layout = type.layout.with(a, Invariant);
    lines.push_back(std::string(g.path(m).substr(wrapped)) + " " + text(type));
  }
  return lines;
}

/// Throws CannotRun where two layouts differ. The sentence says `what` of the first difference, and what to do.
inline void check_alike(const BlockLayout& one, const BlockLayout& other, const std::string& what,
                        const std::string& remedy) {
  if (one == other) return;
  const auto differ = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const auto line = [](const BlockLayout& lines, auto at) { return at == lines.end() ? "nothing more" : *at; };
  throw CannotRun(what + ": " + line(one, differ.first) + ", and " + line(other, differ.second) + "; " + remedy);
}

}  // namespace parallel::internals
