// Small gradients are completed together: one call for all vectors that are pending on the same axes, and one for a sum
// over several axes.
#pragma once
#include <parallel/graph/lowering.hpp>
#include <parallel/graph/stages.hpp>

namespace parallel::internals {

namespace bucketing {
/// A gradient before the all-reduces that complete it.
struct Pending {
  int value = -1;
  AxisList axes{};
  int calls = 0;
};
constexpr Pending before_completion(const Graph& g, int value) {
  Pending p{value};
  for (const Node* n = &g.maker(value); n->is(Structural::move) && n->transition.collective == Collective::all_reduce &&
                                        n->region == 0 && !staging::on_stages(g, *n);
       n = &g.maker(p.value)) {
    p.value = n->operands[0];
    ++p.calls;
    for (const Axis* a : n->transition.axes) p.axes.push_back(a);
  }
  routing::sort_by_name(p.axes);
  return p;
}
constexpr Layout completed(Layout layout, const AxisList& axes) {
  for (const Axis* a : axes) layout = layout.with(a, Invariant);
  return layout;
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
         left.layout.others.size() == a.axes.size() && right.layout.others.size() == b.axes.size();
}
/// Completes some sums in one call; where each is, complete, in `completed_values`.
constexpr void complete(Trace& trace, const List<int, max_operands>& sums, const AxisList& axes,
                        List<int, max_operands>& completed_values) {
  Type type = trace.graph.values[sums[0]].type;
  std::int64_t elements = 0;
  for (const int s : sums) elements += trace.graph.values[s].type.layout.elements();
  type.layout.dims.count = 0;
  type.layout.dims.push_back(Dim(elements));
  trace.member = trace.graph.values[sums[0]].member;
  trace.from({&operation::bucket, sums, {}, {}, {}, trace.member});
  const int bucket = trace.enter(trace.emit(operation::bucket, nodes_operands(sums), {type}, Kind::activation),
                                 completed(type.layout, axes));
  std::int64_t begin = 0;
  for (const int s : sums) {
    const Value sum = trace.graph.values[s];
    trace.member = sum.member;
    const int part = trace.emit(operation::in_bucket, {bucket}, {{sum.type.dtype, completed(sum.type.layout, axes)}},
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
  Vector<bool> done;
  for (const int g : gradients) pending.push_back(before_completion(trace.graph, g));
  done.resize(gradients.size(), false);
  for (int i = 0; i < gradients.size(); ++i) {
    const Pending& first = pending[i];
    if (done[i] || first.calls == 0) continue;
    List<int, max_operands> of, sums, completed_values;
    for (int j = i; j < gradients.size() && of.size() < max_operands; ++j)
      if (j == i || (!done[j] && pending[j].calls > 0 && small(trace.graph, first.value) &&
                     small(trace.graph, pending[j].value) && together(trace.graph, first, pending[j]))) {
        of.push_back(j);
        sums.push_back(pending[j].value);
      }
    if (of.size() > 1) {
      complete(trace, sums, first.axes, completed_values);
    } else if (first.calls > 1) {
      trace.origin = trace.graph.maker(gradients[i]).origin;
      trace.member = trace.graph.values[first.value].member;
      completed_values.push_back(
          trace.enter(first.value, completed(trace.graph.values[first.value].type.layout, first.axes)));
    }
    for (int k = 0; k < completed_values.size(); ++k) {
      gradients[of[k]] = completed_values[k];
      done[of[k]] = true;
    }
  }
}

}  // namespace parallel::internals
