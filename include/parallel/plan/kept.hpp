// Which values of an iteration are read after it has ended: by the loop that goes back through it, or by another part
// of a stage's work.
#pragma once
#include <parallel/plan/events.hpp>

namespace parallel::internals {

struct Kept {
  Vector<bool> iterations{};  ///< per value: each iteration's is kept
  Vector<bool> crosses{};     ///< per value: one part of the work on a micro-batch makes it, and another reads it
};

namespace keeping {
struct Keeping {
  const GraphView& g;
  const Mesh& mesh;
  Vector<int> work{};  ///< per node: of the part that it stands in; -1: in none, or what the loop over micro-batches
                       ///< carries, which stays where it is
  Kept kept{};

  /// Whether a value with room of its own is read in another part than the one that makes it.
  constexpr bool goes_on(int value, int reader) const {
    const int maker = g.value(value).node;
    return !g.node(maker).operation->aliases && work[reader] >= 0 && work[maker] >= 0 && work[reader] != work[maker];
  }
  constexpr void read(int value, int reader) {
    const int root = before_aliases(g, mesh, value), from = g.value(root).region, by = g.node(reader).region;
    const Node& maker = g.maker(root);
    const bool crosses = goes_on(root, reader);
    if (crosses) kept.crosses[root] = true;
    if (maker.is(Structural::layer))  // of a stack that may have been made in another part
      if (const int stack = before_aliases(g, mesh, maker.operands[0]); goes_on(stack, reader))
        kept.crosses[stack] = true;
    if (from <= 0 || g.child_towards(from, by) >= 0) return;
    if (from != by ? g.region(from).loop == g.region(by).loop : crosses && goes_back(g.region(from).kind))
      kept.iterations[root] = true;
  }
};
}  // namespace keeping

constexpr Kept kept_values(const GraphView& g, const Mesh& mesh) {
  keeping::Keeping k{g, mesh};
  k.work.resize(static_cast<int>(g.nodes.size()), -1);
  for (const StagePart& part : g.parts)
    for (int at = part.begin; at < part.end; ++at)
      if (const int n = g.order[static_cast<std::size_t>(at)];
          !(g.node(n).is(Structural::carry) && g.region(g.node(n).region).kind == RegionKind::micro_batches))
        k.work[n] = static_cast<int>(part.work);
  k.kept.iterations.resize(g.size_of_values(), false);
  k.kept.crosses.resize(g.size_of_values(), false);
  for (const int n : g.order)
    for (const int o : g.node(n).operands) k.read(o, n);
  for (const Stack& s : g.stacks)  // a stack that one part fills and another reads, whole or in its iterations
    if (const int outside = g.value(s.outside).node;
        g.node(outside).is(Structural::stacked) && k.work[outside] >= 0 &&
        (k.work[g.value(s.inside).node] != k.work[outside] || k.kept.crosses[before_aliases(g, mesh, s.inside)]))
      k.kept.crosses[s.outside] = true;
  for (const Carry& c : g.carries)
    if (k.work[g.value(c.inside).node] >= 0 &&
        (k.kept.crosses[c.returned] || (c.result >= 0 && k.kept.crosses[c.result])))
      k.kept.crosses[c.inside] = true;
  return static_cast<Kept&&>(k.kept);
}

}  // namespace parallel::internals
