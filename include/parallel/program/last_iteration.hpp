// Of gradients that micro-batches add up layer by layer, those of matrices are completed in the last micro-batch, each
// in its own place while the layer before is computed, and not behind the loop. A reduce-scatter stays there: its parts
// would take room of their own while all else is still in use. A pass over the differentiated graph.
#pragma once
#include <parallel/graph/structure.hpp>
#include <parallel/operation/update.hpp>

namespace parallel::internals {

namespace completing {
struct Completing {
  Graph& g;
  Vector<int> readers{};  ///< per value: how many nodes read it whose results something needs

  constexpr explicit Completing(Graph& graph) : g(graph) { count_readers(); }

  constexpr void count_readers() {
    Vector<bool> needed;
    needed.resize(g.values.size(), false);
    for (const Output& o : g.outputs) needed[o.value] = true;
    for (const Member& m : g.members)
      if (m.updated >= 0) needed[m.updated] = true;
    if (g.commit >= 0) needed[g.commit] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (int at = g.order.size() - 1; at >= 0; --at)
        if (const Node& node = g.nodes[g.order[at]]; is_needed(node, needed))
          for (const int o : node.operands) {
            changed = changed || !needed[o];
            needed[o] = true;
          }
      for (const Carry& c : g.carries)
        if ((needed[c.inside] || needed[c.result]) && !(needed[c.initial] && needed[c.returned]))
          changed = needed[c.inside] = needed[c.initial] = needed[c.returned] = true;
    }
    readers.resize(g.values.size(), 0);
    for (const int n : g.order)
      if (is_needed(g.nodes[n], needed))
        for (const int o : g.nodes[n].operands) ++readers[o];
  }
  static constexpr bool is_needed(const Node& node, const Vector<bool>& needed) {
    bool any = false;
    for (int r = 0; r < node.results; ++r) any = any || needed[node.result + r];
    return any;
  }

  /// What fills a stack of gradients that micro-batches have added up layer by layer; null where a value is none.
  constexpr const Node* added_up(int value) const {
    for (const Carry& c : g.carries)
      if (c.result == value && g.regions[c.region].kind == RegionKind::micro_batches)
        if (const Node& stacked = g.maker(c.returned); stacked.is(Structural::stacked)) {
          for (const int layer : stacked.operands)
            if (g.maker(layer).operation != &operation::accumulate) return nullptr;
          return &stacked;
        }
    return nullptr;
  }
  constexpr bool completes(const Node& node) const {
    const Transition& t = node.transition;
    return node.phase == Phase::backward && t.collective == Collective::all_reduce && t.from == Partial &&
           t.to == Invariant && t.along == 0 && !t.maximum && t.among.kind != PlacementKind::at;
  }

  /// At the end of a region.
  constexpr void add(const Node& node, const Region& region) {
    int at = 0;
    while (g.order[at] != region.end) ++at;
    g.nodes.push_back(node);
    g.order.insert(at, g.nodes.size() - 1);
  }
  constexpr int value_of(const Node& node, Type type, int stack) {
    Value v;
    v.type = type;
    v.kind = Kind::activation;
    v.node = g.nodes.size();
    v.region = node.region;
    v.member = node.member;
    v.stack = stack;
    g.values.push_back(v);
    return g.values.size() - 1;
  }
  constexpr void read_instead(int old, int value) {
    for (const int n : g.order)
      for (auto& o : g.nodes[n].operands)
        if (o == old) o = value;
    for (Stack& s : g.stacks)
      if (s.outside == old && g.maker(s.inside).is(Structural::layer)) s.outside = value;
    for (Carry& c : g.carries)
      if (c.initial == old) c.initial = value;
    for (Output& o : g.outputs)
      if (o.value == old) o.value = value;
  }

  /// `move` of each layer, to `type`, in place of that which gave the `whole` stack behind the loop.
  constexpr void in_the_last(const Node& stacked, Node move, const Type& type, int whole) {
    const int layers = g.values[stacked.operands[0]].region, loop = stacked.region;
    Node filled = stacked;
    const int first = g.stacks.size();
    for (auto& layer : filled.operands) {
      move.operands = {layer};
      move.region = layers;
      move.in_last = loop;
      layer = move.result = value_of(move, type, 0);
      add(move, g.regions[layers]);
      g.stacks.push_back({layers, layer, -1});
    }
    filled.result = value_of(filled, g.values[whole].type, g.values[whole].stack);
    add(filled, g.regions[loop]);
    for (int s = first; s < g.stacks.size(); ++s) g.stacks[s].outside = filled.result;
    read_instead(whole, filled.result);
  }
  constexpr void run() {
    const Vector<IndexOf<Node>> order = g.order;
    for (const int n : order) {
      const Node node = g.nodes[n];
      const int terms = node.operands.empty() ? -1 : int{node.operands[0]};
      if (!completes(node) || readers[node.result] == 0 || readers[terms] > 1) continue;
      const Type type = g.values[node.result].type;
      if (const Node* const stacked = added_up(terms); stacked != nullptr && type.layout.rank() > 2)
        in_the_last(Node(*stacked), node, {type.dtype, without_leading(type.layout)}, node.result);
    }
  }
};
}  // namespace completing

constexpr void complete_in_last_iteration(Graph& g) {
  bool micro_batches = false;
  for (const Region& r : g.regions) micro_batches = micro_batches || r.kind == RegionKind::micro_batches;
  if (micro_batches && g.stages == nullptr) completing::Completing(g).run();
}

}  // namespace parallel::internals
