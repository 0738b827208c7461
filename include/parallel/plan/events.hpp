// The order of a step: what is needed, in the program's order, each collective started as early and waited for as late
// as it can be.
#pragma once
#include <parallel/plan/view.hpp>

namespace parallel::internals {

enum class EventKind : std::uint8_t { compute, start, wait, begin, end };

struct Event {
  EventKind kind = EventKind::compute;
  int node = 0;           ///< of a fusion the first
  int nodes = 1;          ///< of a fusion how many are computed together: they follow each other by Node::then
  bool crossing = false;  ///< a wait for what was started in an earlier iteration, or part, if anything was
  int chunk = 0;          ///< of a stage's part of the work on a micro-batch
  /// in the list: of a wait the start that it waits for, of a loop's end its begin, of a begin its last end
  int partner = -1;
};

/// Calls f(number of the node) for what an event is about: a node, or all of a fusion.
template <class F>
constexpr void each_node(const GraphView& g, const Event& e, F f) {
  for (int i = 0, n = e.node; i < e.nodes; ++i, n = g.node(n).then) f(n);
}

/// Which nodes some values are made by, of what these are made, and so on.
constexpr Vector<bool> makers(const GraphView& g, const Mesh& mesh, Vector<bool> values) {
  Vector<bool> nodes;
  nodes.resize(static_cast<int>(g.nodes.size()), false);
  for (bool changed = true; changed;) {
    changed = false;
    const auto need = [&](int v) {
      changed = changed || !values[v];
      values[v] = true;
    };
    for (const Carry& c : g.carries) {
      if (c.result >= 0 && values[c.result] && !values[c.inside]) need(c.inside);
      if (values[c.inside] && !(values[c.initial] && values[c.returned])) {
        need(c.initial);
        need(c.returned);
      }
    }
    for (int i = static_cast<int>(g.order.size()) - 1; i >= 0; --i) {
      const int n = g.order[static_cast<std::size_t>(i)];
      if (nodes[n]) continue;
      const Node& node = g.node(n);
      bool any = false;
      for (int r = 0; r < node.results; ++r) any = any || values[node.result + r];
      if (!any) continue;
      nodes[n] = true;
      const bool alias = is_alias(g, node, mesh);
      for (const int o : node.operands)
        if (!values[o] && (!alias || o == node.operands[0])) need(o);
      for (int r = node.region; r > 0; r = g.region(r).parent) nodes[g.region(r).begin] = nodes[g.region(r).end] = true;
    }
  }
  return nodes;
}
/// Which nodes a program's outputs and updates need, and other stages.
constexpr Vector<bool> needed(const GraphView& g, const Mesh& mesh) {
  Vector<bool> values;
  values.resize(g.size_of_values(), false);
  for (const int v : g.outputs) values[v] = true;
  for (const Member& m : g.members)
    if (m.updated >= 0) values[m.updated] = true;
  for (const Node& n : g.nodes)
    if (n.transition.along != 0 && calls(n, mesh)) values[n.result] = true;
  return makers(g, mesh, static_cast<Vector<bool>&&>(values));
}

/// What a value is before every alias on this mesh.
constexpr int before_aliases(const GraphView& g, const Mesh& mesh, int value) {
  while (is_alias(g, g.maker(value), mesh) && !g.maker(value).is(Structural::layer)) value = g.maker(value).operands[0];
  return value;
}

/// Collectives of one set of axes that may be under way at one time; a communicator holds as many.
inline constexpr int max_started = 16;

namespace ordering {
struct Ordering {
  const GraphView& g;
  const Mesh& mesh;
  Vector<Event> events{};
  Vector<bool> pending{};  ///< per node: started and not yet waited for
  Vector<int> started{};   ///< in order
  int under_way = 0;       ///< how many are pending
  int chunk = 0;           ///< in which events stand

  constexpr void put(EventKind kind, int n, bool crossing = false) { events.push_back({kind, n, 1, crossing, chunk}); }
  constexpr void wait(int n) {
    pending[n] = false;
    --under_way;
    put(EventKind::wait, n);
  }
  /// The exchanges of one set of axes take places in turn: before one starts, the one that had its place is waited for.
  constexpr void start(int n) {
    int since = 0;
    for (int i = started.size() - 1; i >= 0; --i)
      if (g.node(started[i]).transition.axes == g.node(n).transition.axes && g.node(started[i]).transition.along == 0 &&
          ++since == max_started && pending[started[i]])
        wait(started[i]);
    put(EventKind::start, n);
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
        taken = alive[n] && calls(g.node(n), mesh) && g.node(n).transition.axes == g.node(c).transition.axes &&
                g.inside(g.node(n).region, begin.region);
      if (taken) wait(c);
    }
  }
  /// Waits for everything that the node's operands, through aliases, are still waiting for.
  constexpr void wait_for(const Node& node) {
    if (under_way == 0) return;
    for (const int o : node.operands) {
      int n = g.value(before_aliases(g, mesh, o)).node;
      for (const Carry& c : g.carries)  // what the last iteration handed on
        if (g.node(n).is(Structural::carried) && c.result == g.node(n).result) n = g.value(c.returned).node;
      if (pending[n]) wait(n);
    }
  }
  /// Edges between stages: what is received is waited for where it is needed; the buffer of what is sent is free again
  /// when the next part of its kind begins.
  constexpr void edge(int n) {
    const Node& node = g.node(n);
    wait_for(node);
    if (!edge_calls(node.transition, mesh, chunk)) {
      if (!is_alias(g, node, mesh)) put(EventKind::compute, n);
    } else if (node.transition.collective == Collective::send) {
      put(EventKind::start, n);
    }
  }
  /// Where the part of the work on a micro-batch ends that stands at a place of the order; the order's end behind the
  /// last.
  constexpr std::size_t end_of_part(std::size_t at) const {
    while (at < g.order.size() &&
           !(g.node(g.order[at]).is(Structural::end_region) && g.in_parts(g.node(g.order[at]).region)))
      ++at;
    return at;
  }
  constexpr void free_all_buffers(int end, const Vector<bool>& alive) {
    std::size_t begin = 0;
    while (g.order[begin] != g.region(g.node(end).region).begin) ++begin;
    Vector<int> sent;
    for (std::size_t at = begin; at < g.order.size(); ++at) {
      bool known = false;
      for (const int n : sent) known = known || n == g.order[at];
      if (!known) free_buffers(at, at + 1, alive);
      sent.push_back(g.order[at]);
    }
  }
  /// Begins a part of a stage's work: what it receives is asked for first, so that two stages that send to each other
  /// need not wait in a circle.
  constexpr void begin_part(std::size_t at, std::size_t end, const Vector<bool>& alive) {
    for (std::size_t i = at; i < end; ++i)
      if (const Node& node = g.node(g.order[i]); alive[g.order[i]] && node.transition.along != 0 &&
                                                 node.transition.collective == Collective::receive &&
                                                 edge_calls(node.transition, mesh, chunk))
        start(g.order[i]);
    free_buffers(at, end, alive);
  }
  /// Waits for what earlier parts sent from the nodes between two places of the order.
  constexpr void free_buffers(std::size_t at, std::size_t end, const Vector<bool>& alive) {
    for (; at < end; ++at)
      if (const Node& node = g.node(g.order[at]); alive[g.order[at]] && node.transition.along != 0 &&
                                                  node.transition.collective == Collective::send && calls(node, mesh))
        put(EventKind::wait, g.order[at], true);
  }

  /// What an iteration hands on may be waited for by the next one, where that first needs it. Says whether collective n
  /// of a region that begins behind event `body` is such a value; it stays under way when the region ends.
  constexpr bool cross(int n, int body) {
    for (const Carry& c : g.carries) {
      if (g.value(c.returned).node != n) continue;
      const int made = g.value(before_aliases(g, mesh, g.node(n).operands[0])).node;
      int starts = 0, at = -1, maker = -1;
      for (int e = body; e < events.size(); ++e) {
        const Node& node = g.node(events[e].node);
        starts += events[e].kind == EventKind::start && node.transition.axes == g.node(n).transition.axes;
        each_node(g, events[e], [&](int part) {
          if (part == made) maker = e;
          for (const int o : g.node(part).operands)
            if (at < 0 && before_aliases(g, mesh, o) == c.inside) at = e;
        });
      }
      // its operand must not be made anew before it has been waited for
      if (at < 0 || at >= maker || 2 * starts > max_started) return false;
      events.insert(at, {EventKind::wait, n, 1, true, chunk});
      return true;
    }
    return false;
  }
};
}  // namespace ordering

/// Says of each event which is its partner. A wait that crosses stands before what it waits for, or behind an earlier
/// start of the same.
constexpr void find_partners(const GraphView& g, std::span<Event> list) {
  Event* const events = list.data();
  const auto count = static_cast<int>(list.size());
  Vector<int> start, begin;
  start.resize(static_cast<int>(g.nodes.size()), -1);
  begin.resize(static_cast<int>(g.regions.size()), -1);
  for (int i = count - 1; i >= 0; --i)
    if (events[i].kind == EventKind::start) start[events[i].node] = i;  // the first
  for (int i = 0; i < count; ++i) {
    Event& e = events[i];
    const int region = g.node(e.node).region;
    if (e.kind == EventKind::start) start[e.node] = i;
    if (e.kind == EventKind::wait) e.partner = start[e.node];
    if (e.kind == EventKind::begin) begin[region] = i;
    if (e.kind == EventKind::end) {
      e.partner = begin[region];
      events[e.partner].partner = i;
    }
  }
}

constexpr Vector<Event> events_in_order(const GraphView& g, const Mesh& mesh) {
  const Vector<bool> alive = needed(g, mesh);
  const int nodes = static_cast<int>(g.nodes.size());
  // A collective starts right behind the node that makes its operand, where that stands in the same region and is
  // itself no collective.
  Vector<int> starts, next;
  starts.resize(nodes, -1);
  next.resize(nodes, -1);
  Vector<bool> early;
  early.resize(nodes, false);
  const Vector<int> part = parts_of(g);
  // Nodes of a fusion stand one behind the other, unless a stage needs only some, or has them in other parts.
  Vector<int> first_of;
  first_of.resize(nodes, -1);
  for (std::size_t at = 0; at < g.order.size(); ++at) {
    const int n = g.order[at], before = at == 0 ? -1 : int{g.order[at - 1]};
    first_of[n] = before >= 0 && g.node(before).then == n && alive[before] ? first_of[before] : n;
  }
  for (int i = static_cast<int>(g.order.size()) - 1; i >= 0; --i) {
    const int n = g.order[static_cast<std::size_t>(i)];
    const Node& node = g.node(n);
    if (!alive[n] || !calls(node, mesh) || early[n]) continue;
    // stages start what they share in the program's order, whatever else each has
    if (g.stages != nullptr && node.transition.axes.contains(g.stages)) continue;
    const int maker = g.value(before_aliases(g, mesh, node.operands[0])).node;
    if (g.node(maker).region != node.region || calls(g.node(maker), mesh) || part[maker] == elsewhere) continue;
    next[n] = starts[first_of[maker]];
    starts[first_of[maker]] = n;
    early[n] = true;
  }

  ordering::Ordering s{g, mesh};
  s.pending.resize(nodes, false);
  int segment = 0;
  for (std::size_t at = 0; at < g.order.size(); ++at) {
    const int n = g.order[at];
    if (!alive[n]) continue;
    const Node& node = g.node(n);
    if (node.transition.along != 0) {
      s.edge(n);
    } else if (calls(node, mesh)) {
      if (early[n]) continue;
      s.wait_for(node);
      s.start(n);
    } else if (node.is(Structural::begin_region)) {
      for (const int inner : g.order) {  // what the region needs from outside is waited for before it
        if (s.under_way == 0) break;
        const Node& within = g.node(inner);
        if (alive[inner] && g.inside(within.region, node.region)) s.wait_for(within);
      }
      s.clear_places(node, alive);
      s.put(EventKind::begin, n);
      if (g.in_parts(node.region)) s.begin_part(at, s.end_of_part(at), alive);
    } else if (node.is(Structural::end_region)) {
      const bool parts = g.in_parts(node.region);
      int body = s.events.size();
      while (s.events[body - 1].kind != EventKind::begin || g.node(s.events[body - 1].node).region != node.region)
        --body;
      for (int c = 0; c < nodes && s.under_way > 0; ++c)
        if (s.pending[c] && g.inside(g.node(c).region, node.region) &&
            (parts || !(g.node(c).region == node.region && s.cross(c, body))))
          s.wait(c);
      s.put(EventKind::end, n);
      if (!parts) continue;
      const std::size_t next_end = s.end_of_part(at + 1);
      s.chunk = next_end < g.order.size() ? ++segment / g.parts : 0;
      if (next_end < g.order.size())
        s.begin_part(at + 1, next_end, alive);
      else
        s.free_all_buffers(n, alive);
    } else if (node.operation->computes && !is_alias(g, node, mesh)) {
      if (first_of[n] != n) continue;
      Event e{EventKind::compute, n, 1, false, s.chunk};
      for (int m = node.then; m >= 0 && alive[m] && first_of[m] == n; m = g.node(m).then) ++e.nodes;
      each_node(g, e, [&](int m) { s.wait_for(g.node(m)); });
      s.events.push_back(e);
    }
    for (int c = starts[n]; c >= 0; c = next[c]) s.start(c);
  }
  for (int c = 0; c < nodes; ++c)
    if (s.pending[c]) s.wait(c);
  find_partners(g, {s.events.begin(), static_cast<std::size_t>(s.events.size())});
  return s.events;
}

}  // namespace parallel::internals
