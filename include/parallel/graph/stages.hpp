// Layers shared out over the stages of a pipeline: the edges between stages, and on which stages everything else of the
// program lives.
//
// Nothing but `Layers<n / stage, Block>` names the axis. What the layers are made from lives At the first stage, what
// depends on them At the last. What several stages need, each of them computes; a parameter lies where it is used, and
// where its uses are on several stages, its gradient is the sum of theirs: it is Broadcast among them, as an Invariant
// value is that meets a Split one.
#pragma once
#include <parallel/graph/trace.hpp>

namespace parallel::internals::staging {

constexpr Placement placement(std::uint8_t home) {
  return {PlacementKind::at, 0, (home & first ? std::uint64_t{1} : 0) | (home & last ? std::uint64_t{1} << 63 : 0)};
}
constexpr bool several(std::uint8_t home) { return home != first && home != last; }

/// A move of a value on the axis of the stages, to where `home` says.
constexpr int moved(Trace& trace, int value, Collective collective, Placement from, Placement to, std::uint8_t home) {
  const Value before = trace.graph.values[value];
  const int here = trace.member;
  trace.member = before.member;
  const int result = trace.emit(operation::move, {value}, {before.type}, before.kind);
  trace.member = here;
  Transition& t = trace.graph.nodes[trace.graph.nodes.size() - 1].transition;
  t.collective = collective;
  t.axes.push_back(trace.graph.stages);
  t.from = from;
  t.to = to;
  t.reduction = before.type.dtype;
  t.chunks = trace.graph.chunks;
  trace.graph.values[result].home = home;
  trace.shard_like(result, value);
  return result;
}
/// Behind the layers of a stage: their result goes to the next one; the last keeps it.
constexpr int send(Trace& trace, int value) {
  const int result = moved(trace, value, Collective::send, Invariant, placement(last), last);
  trace.graph.nodes[trace.graph.nodes.size() - 1].transition.along = 1;
  return result;
}
/// Before them: what the stage before has handed on; the first takes the value itself.
constexpr int receive(Trace& trace, int value) {
  const int result = moved(trace, value, Collective::receive, placement(first), Invariant, all);
  // from the second stage on it depends on parameters, whatever the first takes
  trace.graph.values[result].differentiable = true;
  trace.graph.nodes[trace.graph.nodes.size() - 1].transition.along = 1;
  return result;
}

/// Where an edge ends that goes the same way back.
constexpr void turn(Transition& t) {
  t.along = -t.along;
  t.collective = t.collective == Collective::send ? Collective::receive : Collective::send;
}

constexpr bool on_stages(const Graph& g, const Node& node) {
  return g.stages != nullptr && node.transition.axes.contains(g.stages);
}
constexpr bool staged(const Graph& g, int region) {
  for (; region >= 0; region = g.regions[region].parent)
    if (g.regions[region].staged) return true;
  return false;
}

/// The stages on which a node runs, where those are known on which its results are needed.
constexpr std::uint8_t runs_on(const Graph& g, const Node& node, const Vector<std::uint8_t>& needed) {
  if (staged(g, node.region)) return all;
  if (on_stages(g, node))
    return node.transition.along == 1 && node.transition.collective == Collective::receive ? first
           : node.transition.along != 0                                                    ? all
                                        : g.values[node.operands[0]].home;
  std::uint8_t where = 0;
  for (int r = 0; r < node.results; ++r) {
    const std::uint8_t home = g.values[node.result + r].home;
    where = static_cast<std::uint8_t>(where | (home == all ? needed[node.result + r] : home));
  }
  return where;
}

/// What loops that are not shared out ask beyond what nodes read: an iteration needs what the one before has handed on,
/// and what is read of a loop lives wherever its iterations run. Says whether that is more than was needed.
constexpr bool needs_of_loops(const Graph& g, Vector<std::uint8_t>& needed) {
  bool more = false;
  const auto need = [&](int value, std::uint8_t where) {
    more = more || both(needed[value], where) != where;
    needed[value] = static_cast<std::uint8_t>(needed[value] | where);
  };
  for (const Carry& c : g.carries) {
    if (!goes_back(g.regions[c.region].kind) || staged(g, c.region)) continue;
    need(c.returned, needed[c.inside]);
    if (needed[c.result] != 0) need(c.result, needed[c.returned]);
  }
  for (const Stack& s : g.stacks)
    if (g.maker(s.outside).is(Structural::stacked) && needed[s.outside] != 0 && !staged(g, s.region))
      need(s.outside, needed[s.inside]);
  return more;
}

/// What nodes read, back to front, is needed where they run.
constexpr void need_operands(const Graph& g, Vector<std::uint8_t>& needed) {
  do {
    for (int i = g.order.size() - 1; i >= 0; --i) {
      const Node& node = g.nodes[g.order[i]];
      const std::uint8_t where = runs_on(g, node, needed);
      for (const int o : node.operands) needed[o] = static_cast<std::uint8_t>(needed[o] | where);
    }
  } while (needs_of_loops(g, needed));
}
/// For every value, the stages that need it.
constexpr Vector<std::uint8_t> needs(const Graph& g) {
  Vector<std::uint8_t> needed;
  needed.resize(g.values.size(), 0);
  for (const Output& o : g.outputs) needed[o.value] = all;
  if (g.commit >= 0) needed[g.commit] = all;
  if (g.scalar_value >= 0) needed[g.scalar_value] = all;
  for (const Member& m : g.members)
    if (m.updated >= 0) needed[m.updated] = g.values[m.updated].home;
  need_operands(g, needed);
  return needed;
}
/// The same where these will be given out: what no stage needs is made on one that has what it is made of anyway, so
/// that parameters lie as in a program that does not give it out.
constexpr Vector<std::uint8_t> needs(const Graph& g, const List<int, meta::max_members>& given_out) {
  Vector<std::uint8_t> needed = needs(g), has;
  has.resize(g.values.size(), all);
  for (const int n : g.order) {
    const Node& node = g.nodes[n];
    std::uint8_t where = all;
    for (const int o : node.operands) where = both(where, has[o]);
    const bool lies = node.operation == &operation::parameter || node.is(Structural::input);
    for (int v = node.result; v < node.result + node.results; ++v) has[v] = lies && needed[v] != 0 ? needed[v] : where;
  }
  for (const int v : given_out)
    if (needed[v] == 0 && g.values[v].home == all)
      needed[v] = both(has[v], first) == 0 && both(has[v], last) != 0 ? last : first;
  need_operands(g, needed);
  return needed;
}

/// Between the forward trace and its differentiation: says of every value where it lives, and writes the moves whose
/// conjugates add up the gradients of what lives on several stages.
class Settling {
 public:
  constexpr explicit Settling(Trace& trace) : trace_(trace), g_(trace.graph) {}

  constexpr void run(const List<int, meta::max_members>& given_out) {
    const Vector<std::uint8_t> needed = needs(g_, given_out);
    for (int v = 0; v < needed.size(); ++v)
      if (g_.values[v].home == all && needed[v] != 0 && !staged(g_, g_.values[v].region) && !on_stages(g_, g_.maker(v)))
        g_.values[v].home = needed[v];
    const Vector<IndexOf<Node>> program = g_.order;
    const int nodes = g_.nodes.size();
    behind_.resize(nodes, -1);
    used_as_.resize(needed.size(), -1);
    for (const int n : program) share(n);
    for (const int n : program) meet(n, needed);
    Vector<IndexOf<Node>> order;
    for (const int n : program) {
      order.push_back(n);
      for (int m = behind_[n]; m >= 0; m = behind_[m]) order.push_back(m);
    }
    g_.order = static_cast<Vector<IndexOf<Node>>&&>(order);
  }

 private:
  /// What is differentiated with respect to and lies on several stages is used differently by each.
  constexpr void share(int n) {
    const Node node = g_.nodes[n];
    if (node.operation != (g_.stashed ? &operation::stash : &operation::parameter) && !node.is(Structural::input))
      return;
    const Value v = g_.values[node.result];
    if (!v.differentiable || !several(v.home) || v.type.layout.on(g_.stages).split()) return;
    used_as_[node.result] = put(node.result, Collective::retype, Invariant, Broadcast, v.home, v.home);
  }
  /// Each operand of a node comes as it lies where the node runs.
  constexpr void meet(int n, const Vector<std::uint8_t>& needed) {
    const bool edge = on_stages(g_, g_.nodes[n]);
    const std::uint8_t where = runs_on(g_, g_.nodes[n], needed);
    for (int i = 0; i < g_.nodes[n].operands.size(); ++i) {
      int o = g_.nodes[n].operands[i];
      if (used_as_[o] >= 0) o = used_as_[o];
      const Value& v = g_.values[o];
      if (v.differentiable && v.home != where && where != 0 && both(v.home, where) == where &&
          (!edge || g_.nodes[n].transition.collective == Collective::receive))
        o = dropped(o, where);
      g_.nodes[n].operands[i] = o;
    }
    if (!g_.nodes[n].is(Structural::carry)) return;
    for (Carry& c : g_.carries)
      if (c.inside == g_.nodes[n].result) c.initial = g_.nodes[n].operands[0];
  }
  constexpr int dropped(int value, std::uint8_t where) {
    for (const Dropped& d : dropped_)
      if (d.value == value && d.where == where) return d.result;
    const std::uint8_t home = g_.values[value].home;
    const int result = put(value, Collective::drop, Broadcast, placement(where), where, home);
    dropped_.push_back({value, where, result});
    return result;
  }
  /// A move right behind what makes the value.
  constexpr int put(int value, Collective collective, Placement from, Placement to, std::uint8_t home,
                    std::uint8_t among) {
    const Value before = g_.values[value];
    const int region = trace_.region;
    trace_.region = before.region;
    const int result = moved(trace_, value, collective, from, to, home);
    trace_.region = region;
    const int n = g_.nodes.size() - 1;
    if (among != all) g_.nodes[n].transition.among = placement(among);
    behind_.push_back(-1);
    used_as_.push_back(-1);
    int last_behind = before.node;
    while (behind_[last_behind] >= 0) last_behind = behind_[last_behind];
    behind_[last_behind] = n;
    return result;
  }

  struct Dropped {
    int value = 0;
    std::uint8_t where = 0;
    int result = 0;
  };
  Trace& trace_;
  Graph& g_;
  Vector<int> behind_{};   ///< per node: the move that stands behind it
  Vector<int> used_as_{};  ///< per value: as what it is used
  Vector<Dropped> dropped_{};
};
/// Until here nothing is At a stage but what an annotation puts there.
constexpr void refuse_named(Trace& trace) {
  for (const Value& v : trace.graph.values)
    if (v.type.layout.on(trace.graph.stages).kind == PlacementKind::at) trace.refuse(Reason::stages_named, v.member);
}
/// `given_out`: results that are no outputs yet.
constexpr void settle(Trace& trace, const List<int, meta::max_members>& given_out = {}) {
  if (trace.graph.stages == nullptr) return;
  refuse_named(trace);
  Settling(trace).run(given_out);
}

/// When the whole program stands: what is needed on some stages only is made there only, and layouts say where
/// everything lies.
constexpr void place(Graph& g) {
  if (g.stages == nullptr) return;
  const Vector<std::uint8_t> needed = needs(g);
  for (int v = 0; v < g.values.size(); ++v) {
    Value& value = g.values[v];
    if (value.home == all && needed[v] != 0 && !staged(g, value.region) && !on_stages(g, g.maker(v)) &&
        !value.type.layout.on(g.stages).split())
      value.home = needed[v];
    // what nothing needs, as a gather in whose place others stand, lies where it would come from
    if (needed[v] == 0)
      if (const Node& maker = g.maker(v); maker.is(Structural::move) && !on_stages(g, maker))
        value.home = g.values[maker.operands[0]].home;
    if (value.home != all) value.type.layout.others.push_back({g.stages, placement(value.home)});
  }
  for (Member& m : g.members)
    if (const std::uint8_t home = g.values[m.value].home; home != all)
      m.type.layout.others.push_back({g.stages, placement(home)});
}

}  // namespace parallel::internals::staging
