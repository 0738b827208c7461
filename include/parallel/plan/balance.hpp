// Layers cut by cost: each stage has as many as let it end with the others.
#pragma once
#include <parallel/plan/view.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals {

/// FLOPs of one micro-batch, forward and backward, on one rank: of what stands before the layers, of an iteration over
/// them, of what stands behind.
struct Costs {
  double first = 0, layer = 0, last = 0;
};
constexpr Costs costs_of(const GraphView& g) {
  Costs costs;
  for (const Node& n : g.nodes) {
    if (n.region == 0 || n.results == 0) continue;
    const Placement at = g.value(n.result).type.layout.on(g.stages);
    const auto flops = static_cast<double>(n.flops);
    if (g.in_stages(n.region)) {
      costs.layer += flops;
    } else if (at.kind == PlacementKind::at) {  // what both ends need, each computes
      costs.first += holds(at, 0, 2) ? flops : 0;
      costs.last += holds(at, 1, 2) ? flops : 0;
    }
  }
  return costs;
}

/// How many of so many iterations over layers each stage has: one at a time goes to the stage that has the least work
/// with it, the earliest of equals.
constexpr Vector<int> balanced(const Costs& costs, int iterations, int stages) {
  Vector<int> counts;
  counts.resize(stages, 1);
  for (int left = iterations - stages; left > 0; --left) {
    int least = 0;
    double least_work = -1;
    for (int s = 0; s < stages; ++s) {
      const double work =
          (counts[s] + 1) * costs.layer + (s == 0 ? costs.first : 0) + (s == stages - 1 ? costs.last : 0);
      if (least_work < 0 || work < least_work) {
        least = s;
        least_work = work;
      }
    }
    ++counts[least];
  }
  return counts;
}

/// How many of so many layers each stage of a balanced program has.
constexpr Vector<int> balanced_layers(const GraphView& g, int layers, int stages) {
  const int blocks = g.staged_layers().blocks;
  Vector<int> counts = balanced(costs_of(g), layers / blocks, stages);
  for (int& c : counts) c *= blocks;
  return counts;
}

/// The mesh with what its stage has of a balanced program's layers. Chunks are cut evenly, and so are layers that are
/// fewer than the stages.
constexpr Mesh with_cut(const GraphView& g, Mesh mesh) {
  mesh.cut = {};
  if (!g.balanced || g.stages == nullptr) return mesh;
  const int stages = mesh.extent(g.stages);
  if (stages == 1 || g.staged_layers().count < stages || g.schedule->chunks > 1 || mesh.here < 0 || mesh.here >= stages)
    return mesh;
  const Vector<int> counts = balanced_layers(g, g.staged_layers().layers(), stages);
  mesh.cut = {g.stages, counts[mesh.here], 0};
  for (int s = 0; s < mesh.here; ++s) mesh.cut.before += counts[s];
  return mesh;
}

}  // namespace parallel::internals
