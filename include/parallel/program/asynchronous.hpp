// Updates within the loop over micro-batches, for schedules that wait for no other stage (PipeDream, Narayanan et al.,
// SOSP 2019).
//
// A micro-batch goes forward with the weights that its stage has when it comes, and backward with the same: they are
// stashed. As soon as a stage has a micro-batch's gradient it updates its weights. Nothing is clipped: no stage knows
// the others' norms.
#pragma once
#include <parallel/model/module.hpp>
#include <parallel/program/differentiate.hpp>

namespace parallel::internals::asynchronous {

constexpr int carried_in(const Graph& g, int initial) {
  for (int i = 0; i < g.carries.size(); ++i)
    if (g.carries[i].initial == initial) return i;
  return -1;
}

/// Within the loop: a model's parameters become the stash of what the updates before have left.
template <class M>
constexpr void stash(M& model, Trace& trace, Applications& program) {
  if constexpr (is_parameter<M>) {
    int& value = program.all[model.value].value;
    const int here = trace.member;
    trace.member = trace.graph.values[value].member;
    const int inside = trace.carry(trace.graph.members[trace.member].value);
    value = trace.emit(operation::stash, {inside}, {trace.graph.values[inside].type}, Kind::parameter);
    trace.member = here;
  } else if constexpr (is_layers<M>) {
    stash(model.block, trace, program);
  } else {
    meta::each_member(model, [&](auto& member, auto) { stash(member, trace, program); });
  }
}

/// Where the backward pass has ended, still within the loop.
template <class Optimizer>
constexpr void update(Trace& trace, const Differentiation& gradients) {
  Graph& g = trace.graph;
  trace.phase = Phase::optimizer;
  trace.origin = -1;
  const int factor = trace.emit(operation::constant, {}, {{DType::f64, {}}}, Kind::constant, {}, 1);
  const int parameters = g.members.size();
  for (int m = 0; m < parameters; ++m) {
    const int outside = g.members[m].value, carry = carried_in(g, outside);
    if (g.members[m].role != Role::parameter || carry < 0) continue;
    const int inside = g.carries[carry].inside, gradient = gradients.of(inside);
    trace.member = m;
    if (gradient < 0) {
      trace.hand_on(inside, trace.emit(operation::copy, {inside}, {g.values[inside].type}, Kind::parameter));
      continue;
    }
    g.members[m].value = inside;
    Optimizer::update(trace, m, gradient, factor);
    g.members[m].value = outside;
  }
  for (const Member& m : g.members)
    if (const int carry = carried_in(g, m.value); carry >= 0 && m.updated >= 0) g.carries[carry].returned = m.updated;
  trace.member = -1;
}

/// Behind the loop: members are what its last update has left.
constexpr void finish(Trace& trace) {
  for (Member& m : trace.graph.members)
    if (const int carry = carried_in(trace.graph, m.value); carry >= 0 && m.updated >= 0)
      m.updated = trace.graph.carries[carry].result;
}

}  // namespace parallel::internals::asynchronous
