// The order of a step: what is needed, in the program's order, each collective started as early and waited for as late as it can be.
#pragma once
#include <parallel/plan/view.hpp>

namespace parallel {

enum class EventKind : std::uint8_t { compute, start, wait, begin, end };

struct Event {
  EventKind kind = EventKind::compute;
  int node = 0;
  bool crossing = false;  ///< a wait for what the iteration before started; there is nothing to wait for in the first
};

/// Which nodes a program's outputs and updates need.
constexpr Vector<bool> needed(const GraphView& g) {
  Vector<bool> values, nodes;
  values.resize(g.size_of_values(), false);
  nodes.resize(static_cast<int>(g.nodes.size()), false);
  for (const int v : g.outputs) values[v] = true;
  for (const Member& m : g.members)
    if (m.updated >= 0) values[m.updated] = true;
  for (bool changed = true; changed;) {
    changed = false;
    const auto need = [&](int v) {
      changed = changed || !values[v];
      values[v] = true;
    };
    for (const Carry& c : g.carries) {
      if (c.result >= 0 && values[c.result] && !values[c.inside]) need(c.inside);
      if (values[c.inside] && !(values[c.initial] && values[c.returned])) need(c.initial), need(c.returned);
    }
    for (int i = static_cast<int>(g.order.size()) - 1; i >= 0; --i) {
      const int n = g.order[static_cast<std::size_t>(i)];
      if (nodes[n]) continue;
      const Node& node = g.node(n);
      bool any = false;
      for (int r = 0; r < node.results; ++r) any = any || values[node.result + r];
      if (!any) continue;
      nodes[n] = true;
      for (const int o : node.operands)
        if (!values[o]) need(o);
      for (int r = node.region; r > 0; r = g.region(r).parent) nodes[g.region(r).begin] = nodes[g.region(r).end] = true;
    }
  }
  return nodes;
}

/// What a value is before every alias on this mesh.
constexpr int before_aliases(const GraphView& g, const Mesh& mesh, int value) {
  while (is_alias(g.maker(value), mesh) && g.maker(value).operation != &operation::layer) value = g.maker(value).operands[0];
  return value;
}

/// Collectives of one set of axes that may be under way at one time; a communicator holds as many.
inline constexpr int max_started = 16;

namespace scheduling {
struct Schedule {
  const GraphView& g;
  const Mesh& mesh;
  Vector<Event> events{};
  Vector<bool> pending{};  ///< per node: started and not yet waited for
  Vector<int> started{};   ///< in order
  int under_way = 0;       ///< how many are pending

  constexpr void wait(int n) {
    pending[n] = false;
    --under_way;
    events.push_back({EventKind::wait, n});
  }
  /// The exchanges of one set of axes take places in turn: before one starts, the one that had its place is waited for.
  constexpr void start(int n) {
    int since = 0;
    for (int i = started.size() - 1; i >= 0; --i)
      if (g.node(started[i]).transition.axes == g.node(n).transition.axes && ++since == max_started && pending[started[i]]) wait(started[i]);
    events.push_back({EventKind::start, n});
    pending[n] = true;
    ++under_way;
    started.push_back(n);
  }
  /// A loop may take every place many times, so what is under way on its axes is waited for before it.
  constexpr void clear_places(const Node& begin, const Vector<bool>& alive) {
    for (int c = 0; c < pending.size() && under_way > 0; ++c) {
      if (!pending[c]) continue;
      bool taken = false;
      for (int n = 0; n < pending.size() && !taken; ++n)
        taken = alive[n] && calls(g.node(n), mesh) && g.node(n).transition.axes == g.node(c).transition.axes && g.inside(g.node(n).region, begin.region);
      if (taken) wait(c);
    }
  }
  /// Waits for everything that the node's operands, through aliases, are still waiting for.
  constexpr void wait_for(const Node& node) {
    if (under_way == 0) return;
    for (const int o : node.operands) {
      int n = g.value(before_aliases(g, mesh, o)).node;
      for (const Carry& c : g.carries)  // what the last iteration handed on
        if (g.node(n).operation == &operation::carried && c.result == g.node(n).result) n = g.value(c.returned).node;
      if (pending[n]) wait(n);
    }
  }
  /// What an iteration hands on may be waited for by the next one, where that first needs it. Says whether collective n of a region that
  /// begins behind event `body` is such a value; it stays under way when the region ends.
  constexpr bool cross(int n, int body) {
    for (const Carry& c : g.carries) {
      if (g.value(c.returned).node != n) continue;
      const int made = g.value(before_aliases(g, mesh, g.node(n).operands[0])).node;
      int starts = 0, at = -1, maker = -1;
      for (int e = body; e < events.size(); ++e) {
        const Node& node = g.node(events[e].node);
        starts += events[e].kind == EventKind::start && node.transition.axes == g.node(n).transition.axes;
        if (events[e].node == made) maker = e;
        for (const int o : node.operands)
          if (at < 0 && before_aliases(g, mesh, o) == c.inside) at = e;
      }
      if (at < 0 || at >= maker || 2 * starts > max_started) return false;  // its operand must not be made anew before it has been waited for
      events.insert(at, {EventKind::wait, n, true});
      return true;
    }
    return false;
  }
};
}  // namespace scheduling

constexpr Vector<Event> schedule(const GraphView& g, const Mesh& mesh) {
  const Vector<bool> alive = needed(g);
  const int nodes = static_cast<int>(g.nodes.size());
  // A collective starts right behind the node that makes its operand, where that stands in the same region and is itself no collective.
  Vector<int> starts, next;
  starts.resize(nodes, -1), next.resize(nodes, -1);
  for (int i = static_cast<int>(g.order.size()) - 1; i >= 0; --i) {
    const int n = g.order[static_cast<std::size_t>(i)];
    const Node& node = g.node(n);
    if (!alive[n] || !calls(node, mesh)) continue;
    const int maker = g.value(before_aliases(g, mesh, node.operands[0])).node;
    if (g.node(maker).region != node.region || calls(g.node(maker), mesh)) continue;
    next[n] = starts[maker];
    starts[maker] = n;
  }
  Vector<bool> early;
  early.resize(nodes, false);
  for (int n = 0; n < nodes; ++n)
    for (int c = starts[n]; c >= 0; c = next[c]) early[c] = true;

  scheduling::Schedule s{g, mesh};
  s.pending.resize(nodes, false);
  for (const int n : g.order) {
    if (!alive[n]) continue;
    const Node& node = g.node(n);
    if (calls(node, mesh)) {
      if (early[n]) continue;
      s.wait_for(node);
      s.start(n);
    } else if (node.operation == &operation::begin_region) {
      for (const int inner : g.order) {  // what the region needs from outside is waited for before it
        if (s.under_way == 0) break;
        const Node& within = g.node(inner);
        if (alive[inner] && g.inside(within.region, node.region)) s.wait_for(within);
      }
      s.clear_places(node, alive);
      s.events.push_back({EventKind::begin, n});
    } else if (node.operation == &operation::end_region) {
      int body = s.events.size();
      while (s.events[body - 1].kind != EventKind::begin || g.node(s.events[body - 1].node).region != node.region) --body;
      for (int c = 0; c < nodes && s.under_way > 0; ++c)
        if (s.pending[c] && g.inside(g.node(c).region, node.region) && !(g.node(c).region == node.region && s.cross(c, body))) s.wait(c);
      s.events.push_back({EventKind::end, n});
    } else if (node.operation->computes && !is_alias(node, mesh)) {
      s.wait_for(node);
      s.events.push_back({EventKind::compute, n});
    }
    for (int c = starts[n]; c >= 0; c = next[c]) s.start(c);
  }
  for (int c = 0; c < nodes; ++c)
    if (s.pending[c]) s.wait(c);
  return s.events;
}

}  // namespace parallel
