// Small gradients are completed together: one call for all vectors that are pending on the same axes, and one for a sum
// over several axes. They are taken in the order in which they appear, and a call begins behind the last of its own,
// under the rest of the backward pass. And together they go to the host, where their parameters are stored there.
#pragma once
#include <parallel/graph/lowering.hpp>
#include <parallel/graph/stages.hpp>

namespace parallel::internals {

namespace bucketing {
/// A gradient before the all-reduces that complete it, and before it goes to the host.
struct Pending {
  int value = -1;
  AxisList axes{};
  int reductions = 0;
  bool offloaded = false;

  constexpr bool any() const { return reductions > 0 || offloaded; }

  constexpr Layout completed(Layout layout) const {
    for (const Axis* a : axes) layout = layout.with(a, Invariant);
    return on_host(layout, offloaded);
  }
};
constexpr Pending before_completion(const Graph& g, int value) {
  Pending p{value};
  const auto completes = [&](const Node& n) {
    const Transition& t = n.transition;
    const bool reduces = t.collective == Collective::all_reduce && t.to == Invariant;
    return n.is(Structural::move) && (reduces || t.collective == Collective::offload) && n.region == 0 &&
           !staging::on_stages(g, n);
  };
  for (const Node* n = &g.maker(value); completes(*n); n = &g.maker(p.value)) {
    p.value = n->operands[0];
    const bool offloads = copies(n->transition.collective);
    p.offloaded = p.offloaded || offloads;
    p.reductions += offloads ? 0 : 1;
    for (int i = 0; !offloads && i < n->transition.axes.size(); ++i) p.axes.push_back(n->transition.axes[i]);
  }
  routing::sort_by_name(p.axes);
  return p;
}
/// Whether this is a vector, or one for every layer, that nothing splits.
constexpr bool small(const Graph& g, int value) {
  const Value& v = g.values[value];
  for (const Dim& d : v.type.layout.dims)
    if (d.count > 0) return false;
  return v.type.layout.rank() <= (v.stack > 0 ? 2 : 1);
}
constexpr bool together(const Graph& g, const Pending& a, const Pending& b) {
  const Type &left = g.values[a.value].type, &right = g.values[b.value].type;
  return left.dtype == right.dtype && g.values[a.value].home == g.values[b.value].home && a.axes == b.axes &&
         a.offloaded == b.offloaded && left.layout.others.size() == a.axes.size() &&
         right.layout.others.size() == b.axes.size();
}
/// What has been written from a place of the order on stands behind the node that makes a value, and behind the loop in
/// which that stands.
constexpr void stand_behind(Graph& g, int value, int from) {
  int behind = from;
  for (int at = from, within = 0;;) {
    const int node = g.order[--at];
    const Node& n = g.nodes[node];
    if (within == 0) behind = at + 1;
    if (node == g.values[value].node) break;
    within += n.is(Structural::end_region) ? 1 : n.is(Structural::begin_region) ? -1 : 0;
  }
  Vector<IndexOf<Node>> written;
  for (int i = from; i < g.order.size(); ++i) written.push_back(g.order[i]);
  for (int i = from; i > behind; --i) g.order[i - 1 + written.size()] = g.order[i - 1];
  for (int i = 0; i < written.size(); ++i) g.order[behind + i] = written[i];
}

/// Completes some sums in one call; where each is, complete, in `completed_values`.
constexpr void complete(Trace& trace, const List<int, max_operands>& sums, const Pending& how,
                        List<int, max_operands>& completed_values) {
  Type type = trace.graph.values[sums[0]].type;
  std::int64_t elements = 0;
  for (const int s : sums) elements += trace.graph.values[s].type.layout.elements();
  type.layout.dims.count = 0;
  type.layout.dims.push_back(Dim(elements));
  trace.member = trace.graph.values[sums[0]].member;
  trace.from({&operation::bucket, sums, {}, {}, {}, trace.member});
  const int bucket = trace.enter(trace.emit(operation::bucket, nodes_operands(sums), {type}, Kind::activation),
                                 how.completed(type.layout));
  std::int64_t begin = 0;
  for (const int s : sums) {
    const Value sum = trace.graph.values[s];
    trace.member = sum.member;
    const int part = trace.emit(operation::in_bucket, {bucket}, {{sum.type.dtype, how.completed(sum.type.layout)}},
                                Kind::activation, {begin});
    trace.graph.values[part].stack = sum.stack;
    completed_values.push_back(part);
    begin += sum.type.layout.elements();
  }
}
}  // namespace bucketing

/// Replaces gradients by themselves, completed in fewer calls. What completed them before is needed by nothing then.
constexpr void complete_together(Trace& trace, Vector<int>& gradients) {
  using namespace bucketing;
  trace.phase = Phase::backward;
  Vector<Pending> pending;
  Vector<int> appearing;
  Vector<bool> done;
  const auto appears = [&](int i) { return int{trace.graph.values[pending[i].value].node}; };
  for (const int g : gradients) {
    pending.push_back(before_completion(trace.graph, g));
    int at = appearing.size();
    appearing.push_back(at);
    for (; at > 0 && appears(appearing[at - 1]) > appears(appearing[at]); --at)
      std::swap(appearing[at - 1], appearing[at]);
  }
  done.resize(gradients.size(), false);
  for (int a = 0; a < appearing.size(); ++a) {
    const int i = appearing[a];
    const Pending& first = pending[i];
    if (done[i] || !first.any()) continue;
    List<int, max_operands> of, sums, completed_values;
    for (int b = a; b < appearing.size() && of.size() < max_operands; ++b) {
      const int j = appearing[b];
      if (j == i || (!done[j] && pending[j].any() && small(trace.graph, first.value) &&
                     small(trace.graph, pending[j].value) && together(trace.graph, first, pending[j]))) {
        of.push_back(j);
        sums.push_back(pending[j].value);
      }
    }
    const int written = trace.graph.order.size();
    if (of.size() > 1) {
      complete(trace, sums, first, completed_values);
    } else if (first.reductions > 1) {
      trace.origin = trace.graph.maker(gradients[i]).origin;
      trace.member = trace.graph.values[first.value].member;
      completed_values.push_back(
          trace.enter(first.value, first.completed(trace.graph.values[first.value].type.layout)));
    }
    if (trace.graph.order.size() > written) stand_behind(trace.graph, sums[sums.size() - 1], written);
    for (int k = 0; k < completed_values.size(); ++k) {
      gradients[of[k]] = completed_values[k];
      done[of[k]] = true;
    }
  }
}

}  // namespace parallel::internals
