// Activation recomputation (Chen et al., arXiv:1604.06174): what the program marks so is not kept for the backward pass
// but computed again there, from what is kept. A pass over the differentiated graph: the backward pass reads copies.
// What is kept on the host is had again in the same way: it is fetched.
#pragma once
#include <parallel/graph/structure.hpp>

namespace parallel::internals {

namespace recomputing {
struct Recomputing {
  Graph& g;
  Vector<bool> anew{};  ///< per forward value: the backward pass makes it again
  struct Copy {
    int region = 0, value = 0;
    int before = -1;  ///< another copy of the same value, in another region
  };
  Vector<Copy> copies{};
  Vector<int> latest{};  ///< per value: its last copy, or -1
  Vector<int> kept{};    ///< per value: as what it lies on the host, or -1
  Vector<IndexOf<Node>> order{};

  constexpr explicit Recomputing(Graph& graph) : g(graph) {
    anew.resize(g.values.size(), false);
    latest.resize(g.values.size(), -1);
    kept.resize(g.values.size(), -1);
    for (const int n : g.order) {
      const Node& node = g.nodes[n];
      if (node.phase != Phase::forward) continue;
      for (int r = 0; r < node.results; ++r)
        anew[node.result + r] =
            g.values[node.result + r].keep != Keep::saved || (looks(node) && anew[node.operands[0]]);
    }
  }
  /// Whether a node's result is its operand, so that keeping the one would keep the other.
  static constexpr bool looks(const Node& node) {
    const Collective moves = node.transition.collective;
    return !node.owns && node.transition.along == 0 &&
           ((node.operation->aliases && node.operation->computes) ||
            (node.is(Structural::move) && (moves == Collective::retype || moves == Collective::drop)));
  }

  /// Where a value is made again that is read in some region of the backward pass: in the loop that goes back through
  /// its own, once for all that reads it there; by each micro-batch what was made before them.
  constexpr int target(int value, int reader) const {
    const int loop = g.regions[g.values[value].region].loop;
    for (int r = reader; r >= 0; r = g.regions[r].parent)
      if (g.regions[r].loop == loop || g.regions[r].kind == RegionKind::micro_batches) return r;
    return reader;
  }
  /// Whether a region goes back through the loop of a value that is made again whether it is read or not.
  constexpr bool repeats(int region, int value) const {
    return g.values[value].keep == Keep::repeated && g.regions[region].reversed &&
           g.regions[g.values[value].region].loop == g.regions[region].loop;
  }
  constexpr int copy_of(int value, int region) const {
    int c = latest[value];
    while (c >= 0 && copies[c].region != region) c = copies[c].before;
    return c < 0 ? -1 : copies[c].value;
  }
  constexpr bool missing(int value, int reader) const {
    return anew[value] && copy_of(value, target(value, reader)) < 0;
  }

  /// Writes a value, and all that it needs again, where the order stands. No recursion: programs are deep.
  constexpr void make(int value, int region) {
    Vector<int> path;
    path.push_back(value);
    while (!path.empty()) {
      const int top = path.back();
      int next = -1;
      if (!is_on_host(top))
        for (const int o : g.maker(top).operands)
          if (next < 0 && missing(o, region)) next = o;
      if (next >= 0) {
        path.push_back(next);
      } else {
        if (missing(top, region)) write(top, region);
        path.resize(path.size() - 1);
      }
    }
  }
  constexpr bool is_on_host(int value) const { return g.values[value].keep == Keep::on_host; }
  /// A move of a value between the memories, in a region; its result.
  constexpr int copied(int value, int region, Phase phase, bool offloads) {
    const Value from = g.values[value];
    Node node;
    node.operation = &operation::move;
    node.operands = {value};
    node.result = g.values.size();
    node.results = 1;
    node.phase = phase;
    node.region = region;
    node.origin = g.maker(value).origin;
    node.member = from.member;
    node.transition.axes = {&axes::host};
    node.transition.from = offloads ? Invariant : OnHost;
    node.transition.to = offloads ? OnHost : Invariant;
    node.transition.collective = collective(node.transition.from, node.transition.to);
    node.transition.reduction = from.type.dtype;
    Value to = from;
    to.type.layout = on_host(from.type.layout, offloads);
    to.node = g.nodes.size();
    to.region = region;
    to.keep = Keep::saved;
    g.values.push_back(to);
    g.nodes.push_back(node);
    return node.result;
  }
  constexpr void write(int value, int region) {
    if (is_on_host(value)) {
      if (kept[value] < 0) kept[value] = copied(value, g.values[value].region, Phase::forward, true);
      const int fetched = copied(kept[value], region, Phase::backward, false);
      copies.push_back({region, fetched, latest[value]});
      latest[value] = copies.size() - 1;
      order.push_back(g.values[fetched].node);
      return;
    }
    Node node = g.maker(value);
    const int first = node.result;
    for (auto& o : node.operands)
      if (anew[o]) o = copy_of(o, target(o, region));
    node.result = g.values.size();
    node.phase = Phase::backward;
    node.region = region;
    node.owns = false;
    for (int r = 0; r < node.results; ++r) {
      Value copy = g.values[first + r];
      copy.node = g.nodes.size();
      copy.region = region;
      copy.again = first + r;
      copies.push_back({region, g.values.size(), latest[first + r]});
      latest[first + r] = copies.size() - 1;
      g.values.push_back(copy);
    }
    order.push_back(g.nodes.size());
    g.nodes.push_back(node);
  }

  /// What the region that begins at a place of the order needs again from outside it stands before it.
  constexpr void before_region(int at) {
    const int region = static_cast<int>(g.nodes[g.order[at]].ints[0]), outside = g.regions[region].parent;
    Vector<bool> seen;
    seen.resize(g.values.size(), false);
    Vector<int> path;
    const auto visit = [&](int value) {
      if (value < anew.size() && anew[value] && !seen[value]) path.push_back(value);
    };
    const auto look = [&](int reader) {
      while (!path.empty()) {
        const int value = path.back();
        path.resize(path.size() - 1);
        if (seen[value]) continue;
        seen[value] = true;
        const int in = target(value, reader);
        if (in == outside)
          make(value, outside);
        else if (g.inside(in, region) && !is_on_host(value))
          for (const int o : g.maker(value).operands) visit(o);
      }
    };
    for (int v = 0; v < anew.size(); ++v)
      if (repeats(region, v)) visit(v);
    look(region);
    for (; g.order[at] != g.regions[region].end; ++at) {
      const Node& node = g.nodes[g.order[at]];
      if (node.phase != Phase::backward) continue;
      for (const int o : node.operands) visit(o);
      look(node.region);
    }
  }
  /// What is made again whether it is read or not stands where its loop begins to go back.
  constexpr void whole(int region) {
    for (int v = 0; v < anew.size(); ++v)
      if (repeats(region, v)) make(v, region);
  }

  constexpr bool reads_backward(int n) const {
    return g.nodes[n].phase == Phase::backward && !g.nodes[n].is(Structural::begin_region) &&
           !g.nodes[n].is(Structural::end_region);
  }
  /// What the gradients of one operation read is made again before the first of them, so that what travels does so
  /// while they are computed.
  constexpr void before_gradients(int at) {
    const Node first = g.nodes[g.order[at]];
    for (; at < g.order.size(); ++at) {
      const int n = g.order[at];
      if (!reads_backward(n) || g.nodes[n].origin != first.origin || g.nodes[n].region != first.region) break;
      for (int i = 0; i < g.nodes[n].operands.size(); ++i)
        if (const int value = g.nodes[n].operands[i]; value < anew.size() && anew[value]) {
          const int in = target(value, first.region);
          if (copy_of(value, in) < 0) make(value, in);
          g.nodes[n].operands[i] = copy_of(value, in);
        }
    }
  }
  constexpr void run() {
    for (int at = 0; at < g.order.size(); ++at) {
      const int n = g.order[at];
      const bool begins = g.nodes[n].is(Structural::begin_region);
      if (begins) before_region(at);
      if (reads_backward(n)) before_gradients(at);
      order.push_back(n);
      if (begins) whole(static_cast<int>(g.nodes[n].ints[0]));
    }
    g.order.clear();
    for (const int n : order) {
      g.order.push_back(n);
      const Node& node = g.nodes[n];
      for (int r = 0; r < node.results && node.result + r < kept.size(); ++r)
        if (const int lies = kept[node.result + r]; lies >= 0) g.order.push_back(g.values[lies].node);
    }
  }
};
}  // namespace recomputing

/// The graph, whose backward pass computes again what is marked by `Value::keep`. What is made again has the same
/// types, origins and members, stands in the backward pass, and says of what it is a copy (`Value::again`).
constexpr void recompute_marked(Graph& g) {
  for (const Value& v : g.values)
    if (v.keep != Keep::saved) return recomputing::Recomputing(g).run();
}

/// The graph as it would be were everything kept: what the backward pass computes again is left out.
constexpr Graph kept_instead(Graph g) {
  for (int n = 0; n < g.nodes.size(); ++n)
    for (int i = 0; i < g.nodes[n].operands.size(); ++i)
      if (const int o = g.nodes[n].operands[i]; g.values[o].again >= 0) g.nodes[n].operands[i] = g.values[o].again;
  Vector<IndexOf<Node>> order;
  for (const int n : g.order)
    if (const Node& node = g.nodes[n]; node.results == 0 || g.values[node.result].again < 0) order.push_back(n);
  g.order = static_cast<Vector<IndexOf<Node>>&&>(order);
  for (Value& v : g.values) v.keep = Keep::saved;
  return g;
}

}  // namespace parallel::internals
