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
  bool crossing = false;  ///< a wait for what was started in an earlier iteration, or slot, if anything was
  bool ahead = false;     ///< a start of what the next iteration needs; before its loop, of what the first does
  int part = -1;          ///< of a stage's work, or -1
  /// in the list: of a wait the start that it waits for, of a loop's begin its last end, of a start ahead within its
  /// loop the one before it
  int partner = -1;
};

/// Whether it starts, within its loop, what stands before the loop for the first iteration.
constexpr bool starts_next(const Event& e) { return e.kind == EventKind::start && e.partner >= 0; }

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
  for (const Output& o : g.outputs) values[o.value] = true;
  for (const Member& m : g.members)
    if (m.updated >= 0) values[m.updated] = true;
  for (const Node& n : g.nodes)
    if (n.transition.along != 0 && calls(n, mesh)) values[n.result] = true;
  for (int v = 0; v < values.size(); ++v)
    if (g.value(v).keep == Keep::repeated && g.value(v).again >= 0) values[v] = true;
  return makers(g, mesh, static_cast<Vector<bool>&&>(values));
}

/// What a value is before every alias on this mesh.
constexpr int before_aliases(const GraphView& g, const Mesh& mesh, int value) {
  while (is_alias(g, g.maker(value), mesh) && !g.maker(value).is(Structural::layer)) value = g.maker(value).operands[0];
  return value;
}

/// Whether a node gathers a parameter from where it lies split, or fetches it.
constexpr bool gathers_parameter(const GraphView& g, const Node& node) {
  const Collective c = node.transition.collective;
  return (c == Collective::all_gather || c == Collective::fetch) && g.value(node.result).kind == Kind::parameter &&
         node.phase != Phase::optimizer;
}
/// Whether an iteration of a loop over layers or steps can have it under way for the next one: what it gathers is a
/// slice of what stood there before the loop, what it fetches the loop forward has left on the host.
constexpr bool can_be_ahead(const GraphView& g, const Mesh& mesh, const Node& node) {
  const Region& region = g.region(node.region);
  if (!goes_back(region.kind) || region.count < 2) return false;
  if (const int left = g.value(node.operands[0]).region;
      node.transition.collective == Collective::fetch && left != node.region && g.region(left).loop == region.loop)
    return true;
  if (!gathers_parameter(g, node)) return false;
  const Node& maker = g.maker(before_aliases(g, mesh, node.operands[0]));
  return maker.is(Structural::layer) && g.region(maker.region).loop == region.loop;
}

/// Collectives of one set of axes that may be under way at one time; a communicator holds as many. An iteration that
/// starts more than half of them has none under way for the next: of 16 parameters that are gathered and reduced, eight
/// layers.
inline constexpr int max_started = 512;

namespace ordering {
struct Ordering {
  const GraphView& g;
  const Mesh& mesh;
  Vector<bool> alive = needed(g, mesh);
  Vector<Event> events{};
  Vector<bool> pending{};   ///< per node: started and not yet waited for
  Vector<int> started{};    ///< in order
  int under_way = 0;        ///< how many are pending
  int part = -1;            ///< in which events stand
  int begin = 0;            ///< the first event of the piece of the order that is being gone through
  int here = 0;             ///< where in the order
  Vector<int> first_of{};   ///< per node: of its fusion the first
  Vector<int> behind{};     ///< per node: a collective that starts right behind it, or -1
  Vector<int> next{};       ///< per collective: another one that starts behind it, or -1
  Vector<bool> is_early{};  ///< per node: a collective that starts right behind what makes its operand
  Vector<bool> is_ahead{};  ///< per node: a collective that an iteration starts for the next one

  constexpr void put(EventKind kind, int n, bool crossing = false) {
    events.push_back({.kind = kind, .node = n, .crossing = crossing, .part = part});
  }
  constexpr void wait(int n) {
    pending[n] = false;
    --under_way;
    put(EventKind::wait, n);
    if (is_ahead[n]) start_ahead(n);
  }
  constexpr void start_ahead(int n) {
    put(EventKind::start, n);
    events.back().ahead = true;
  }
  /// How often a node of a loop happens while what stands in `region` around that loop happens once.
  constexpr int times(const Node& node, int region) const {
    int times = 1;
    for (int r = node.region; r > 0 && !g.inside(region, r); r = g.region(r).parent)
      times *= r == node.in_last ? 1 : g.region(r).count;
    return times;
  }
  /// The exchanges of one set of axes take places in turn: before more of them start, those whose places they take are
  /// waited for. `more`: how many, which stand in `region`.
  template <class Axes>
  constexpr void clear_places(const Axes& axes, int more, int region) {
    for (int i = started.size() - 1; i >= 0; --i) {
      const int n = started[i];
      if (g.node(n).transition.axes != axes || g.node(n).transition.along != 0) continue;
      if (more >= max_started && pending[n]) wait(n);
      more += times(g.node(n), region);
    }
  }
  constexpr void start(int n) {
    clear_places(g.node(n).transition.axes, 1, g.node(n).region);
    put(EventKind::start, n);
    pending[n] = true;
    ++under_way;
    started.push_back(n);
  }
  /// A loop takes places many times.
  constexpr void clear_places(int region) {
    for (int c = 0; c < pending.size() && under_way > 0; ++c) {
      if (!pending[c]) continue;
      int more = 0;
      for (const int n : g.order)
        if (alive[n] && calls(g.node(n), mesh) && g.node(n).transition.axes == g.node(c).transition.axes &&
            g.inside(g.node(n).region, region))
          more += times(g.node(n), g.region(region).parent);
      if (more > 0) clear_places(g.node(c).transition.axes, more, g.region(region).parent);
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
      if (!g.node(n).is(Structural::stacked)) continue;
      for (const int inside : g.node(n).operands)
        if (const int in = g.value(inside).node; pending[in]) wait(in);
    }
  }
  /// Edges between stages: what is received is waited for where it is needed; the buffer of what is sent is free again
  /// when the next part of its kind begins.
  constexpr void edge(int n) {
    const Node& node = g.node(n);
    wait_for(node);
    if (!edge_calls(node.transition, mesh, g.part(part).chunk)) {
      if (!is_alias(g, node, mesh)) put(EventKind::compute, n);
    } else if (node.transition.collective == Collective::send) {
      put(EventKind::start, n);
    }
  }
  template <class F>
  constexpr void each_edge(const StagePart& of, Collective way, F f) const {
    for (int at = of.begin; at < of.end; ++at)
      if (const int n = g.order[static_cast<std::size_t>(at)];
          alive[n] && g.node(n).transition.along != 0 && g.node(n).transition.collective == way)
        f(n);
  }
  /// Waits for what earlier slots sent from a part's nodes.
  constexpr void free_buffers(const StagePart& of) {
    each_edge(of, Collective::send, [&](int n) {
      if (calls(g.node(n), mesh)) put(EventKind::wait, n, true);
    });
  }
  /// Begins a part: what it receives is asked for first, so that two stages that send to each other need not wait in a
  /// circle.
  constexpr void begin_part(int p) {
    part = p;
    each_edge(g.part(p), Collective::receive, [&](int n) {
      if (edge_calls(g.node(n).transition, mesh, g.part(p).chunk)) start(n);
    });
    free_buffers(g.part(p));
  }
  /// Behind all parts nothing is under way. All chunks have the same edges.
  constexpr void end_parts() {
    part = -1;
    for (const StagePart& p : g.parts)
      if (p.chunk == 0) free_buffers(p);
  }

  /// What an iteration hands on may be waited for by the next one, where that first needs it. Says whether collective n
  /// of a region that begins behind event `body` is such a value; it stays under way when the region ends.
  constexpr bool cross(int n, int body) {
    for (const Carry& c : g.carries)
      if (g.value(c.returned).node == n) return cross(n, body, c.inside);
    for (const Stack& s : g.stacks)  // no iteration reads it
      if (g.value(s.inside).node == n) return cross(n, body, -1);
    return false;
  }
  /// The node of an iteration that first writes where a value lies: what others add to in its place, but no layer and
  /// nothing that is carried.
  constexpr int first_writes(int value) const {
    for (;;) {
      const int made = g.value(before_aliases(g, mesh, value)).node;
      if (!g.node(made).operation->updates) return made;
      value = g.node(made).operands[0];
      if (!g.maker(before_aliases(g, mesh, value)).operation->computes) return made;
    }
  }
  /// `inside`: as which the next iteration reads it, or -1.
  constexpr bool cross(int n, int body, int inside) {
    const int made = first_writes(g.node(n).operands[0]);
    int starts = 0, at = -1, maker = -1;
    for (int e = body; e < events.size(); ++e) {
      const Node& node = g.node(events[e].node);
      if (events[e].kind == EventKind::start && node.transition.axes == g.node(n).transition.axes)
        starts += times(node, g.node(n).region);
      each_node(g, events[e], [&](int m) {
        if (m == made && events[e].kind == EventKind::compute) maker = e;
        for (const int o : g.node(m).operands)
          if (at < 0 && inside >= 0 && before_aliases(g, mesh, o) == inside) at = e;
      });
    }
    if (inside < 0) at = maker;
    // its operand must not be made anew before it has been waited for
    if (at < 0 || (inside < 0 ? maker < 0 : at >= maker) || 2 * starts > max_started) return false;
    Event wait{EventKind::wait, n};
    wait.crossing = true;
    wait.part = part;
    events.insert(at, wait);
    return true;
  }

  /// How many collectives an iteration starts on the axes of one of its own.
  constexpr int starts_in(const Node& node) const {
    int starts = 0;
    for (const int n : g.order)
      starts += alive[n] && g.node(n).region == node.region && calls(g.node(n), mesh) &&
                g.node(n).transition.axes == node.transition.axes;
    return starts;
  }
  /// Whether a value is a loop's of which the last iteration may leave an exchange under way.
  constexpr bool leaves_under_way(const Node& maker) const {
    bool any = false;
    if (maker.is(Structural::stacked))
      for (const int inside : maker.operands) any = any || calls(g.maker(before_aliases(g, mesh, inside)), mesh);
    for (const Carry& c : g.carries)
      if (maker.is(Structural::carried) && c.result == maker.result)
        any = any || calls(g.maker(before_aliases(g, mesh, c.returned)), mesh);
    return any;
  }
  /// A collective starts right behind the node that makes its operand, where that stands in the same region and is
  /// itself no collective.
  constexpr void start_early() {
    const int nodes = static_cast<int>(g.nodes.size());
    pending.resize(nodes, false);
    behind.resize(nodes, -1);
    next.resize(nodes, -1);
    is_early.resize(nodes, false);
    is_ahead.resize(nodes, false);
    for (const int n : g.order)
      is_ahead[n] = alive[n] && calls(g.node(n), mesh) && can_be_ahead(g, mesh, g.node(n)) &&
                    starts_in(g.node(n)) * 2 <= max_started;
    first_of.resize(nodes, -1);
    Vector<int> work;  // per node: of which part of a stage's work it is
    work.resize(nodes, -1);
    for (const StagePart& p : g.parts)
      for (int i = p.begin; i < p.end; ++i) work[g.order[static_cast<std::size_t>(i)]] = static_cast<int>(p.work);
    // nodes of a fusion stand one behind the other, unless a stage needs only some, or has them in other parts
    for (std::size_t at = 0; at < g.order.size(); ++at) {
      const int n = g.order[at], before = at == 0 ? -1 : int{g.order[at - 1]};
      first_of[n] = before >= 0 && g.node(before).then == n && alive[before] ? first_of[before] : n;
    }
    for (int i = static_cast<int>(g.order.size()) - 1; i >= 0; --i) {
      const int n = g.order[static_cast<std::size_t>(i)];
      const Node& node = g.node(n);
      if (!alive[n] || !calls(node, mesh) || is_early[n] || is_ahead[n]) continue;
      // what is gathered anew takes room from there on
      if (gathers_parameter(g, node) && (node.phase == Phase::backward || g.value(node.result).keep != Keep::saved))
        continue;
      // a ring's rotations stand where they are to start, a step before they are needed
      if (node.transition.collective == Collective::rotate) continue;
      // stages start what they share in the program's order, whatever else each has
      if (g.stages != nullptr && node.transition.axes.contains(g.stages)) continue;
      const int maker = g.value(before_aliases(g, mesh, node.operands[0])).node;
      if (g.node(maker).region != node.region || calls(g.node(maker), mesh) || !alive[maker] || work[maker] != work[n])
        continue;
      if (leaves_under_way(g.node(maker))) continue;
      next[n] = behind[first_of[maker]];
      behind[first_of[maker]] = n;
      is_early[n] = true;
    }
  }
  /// The events of nodes from one place of the order up to another.
  constexpr void piece(int from, int to) {
    begin = events.size();
    for (here = from; here < to; ++here) {
      const int n = g.order[static_cast<std::size_t>(here)];
      if (!alive[n]) continue;
      event(n);
      for (int c = behind[n]; c >= 0; c = next[c]) {
        wait_for(g.node(c));  // what a loop has handed on may be under way
        start(c);
      }
    }
  }
  constexpr void event(int n) {
    const Node& node = g.node(n);
    if (node.transition.along != 0) {
      edge(n);
    } else if (calls(node, mesh)) {
      if (is_early[n] || is_ahead[n]) return;
      wait_for(node);
      start(n);
    } else if (node.is(Structural::begin_region)) {
      for (const int inner : g.order) {  // what the region needs from outside is waited for before it
        if (under_way == 0) break;
        if (alive[inner] && g.inside(g.node(inner).region, node.region)) wait_for(g.node(inner));
      }
      clear_places(node.region);
      for (int i = here; g.order[static_cast<std::size_t>(i)] != g.region(node.region).end; ++i)
        if (const int inner = g.order[static_cast<std::size_t>(i)];
            is_ahead[inner] && g.node(inner).region == node.region) {
          start(inner);
          events.back().ahead = true;
        }
      put(EventKind::begin, n);
    } else if (node.is(Structural::end_region)) {
      int body = events.size();  // of the loop, if it has begun here and not before all parts
      while (body > begin &&
             (events[body - 1].kind != EventKind::begin || g.node(events[body - 1].node).region != node.region))
        --body;
      for (int c = 0; c < pending.size() && under_way > 0; ++c)
        if (pending[c] && g.inside(g.node(c).region, node.region) && g.node(c).in_last != node.region &&
            !(body > begin && g.node(c).region == node.region && cross(c, body)))
          wait(c);
      put(EventKind::end, n);
    } else if (node.operation->computes && !is_alias(g, node, mesh) && first_of[n] == n) {
      Event e{.kind = EventKind::compute, .node = n, .part = part};
      for (int m = node.then; m >= 0 && alive[m] && first_of[m] == n; m = g.node(m).then) ++e.nodes;
      each_node(g, e, [&](int m) { wait_for(g.node(m)); });
      events.push_back(e);
    }
  }
};
}  // namespace ordering

/// Says of each event which is its partner. A wait that crosses stands before what it waits for, or behind an earlier
/// start of the same.
constexpr void find_partners(const GraphView& g, std::span<Event> list) {
  Event* const events = list.data();
  const auto count = static_cast<int>(list.size());
  Vector<int> start, begin;
  Vector<bool> open;  // per region: whether what comes stands in its loop
  open.resize(static_cast<int>(g.regions.size()), false);
  start.resize(static_cast<int>(g.nodes.size()), -1);
  begin.resize(static_cast<int>(g.regions.size()), -1);
  for (int i = count - 1; i >= 0; --i)
    if (events[i].kind == EventKind::start) start[events[i].node] = i;  // the first
  for (int i = 0; i < count; ++i) {
    Event& e = events[i];
    const int region = g.node(e.node).region;
    if (e.kind == EventKind::begin || e.kind == EventKind::end) open[region] = e.kind == EventKind::begin;
    if (e.kind == EventKind::start && e.ahead && open[region])
      e.partner = start[e.node];
    else if (e.kind == EventKind::start)
      start[e.node] = i;
    if (e.kind == EventKind::wait) e.partner = start[e.node];
    if (e.kind == EventKind::begin) begin[region] = i;
    if (e.kind == EventKind::end) events[begin[region]].partner = i;
  }
}

constexpr Vector<Event> events_in_order(const GraphView& g, const Mesh& mesh) {
  ordering::Ordering s{g, mesh};
  s.start_early();
  int at = 0;
  for (int p = 0; p < static_cast<int>(g.parts.size()); ++p) {
    s.piece(at, g.part(p).begin);  // what stands before the first
    s.begin_part(p);
    s.piece(g.part(p).begin, at = g.part(p).end);
  }
  if (at > 0) s.end_parts();
  s.piece(at, static_cast<int>(g.order.size()));
  for (int c = 0; c < s.pending.size(); ++c)
    if (s.pending[c]) s.wait(c);
  find_partners(g, {s.events.begin(), static_cast<std::size_t>(s.events.size())});
  return s.events;
}

}  // namespace parallel::internals
