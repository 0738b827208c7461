// Updates within the loop over micro-batches, for schedules that wait for no other stage (PipeDream, Narayanan et al.,
// SOSP 2019).
//
// A micro-batch goes forward with the weights that its stage has when it comes, and backward with the same: they are
// stashed. As soon as a stage has a micro-batch's gradient it updates its weights. Nothing is clipped: no stage knows
// the others' norms.
//
// What only such schedules need stands here, and is asked for at five places: `building::build` calls `stash`, `back`
// and `finish`, the checks of a mesh `shared_weights` and `late_update`. Elsewhere it is data: `Schedule::asynchronous`
// and `Work::update`, the operation `stash`, a copy, and `GraphBase::stashed`, by which stages share what is stashed.
#pragma once
#include <parallel/model/module.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/program/differentiate.hpp>
#include <parallel/schedule/refusal.hpp>
#include <parallel/schedule/tasks.hpp>

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
    optimizing::update_as_it_lies<Optimizer>(trace, m, gradient, factor);
    g.members[m].value = outside;
  }
  for (const Member& m : g.members)
    if (const int carry = carried_in(g, m.value); carry >= 0 && m.updated >= 0) g.carries[carry].returned = m.updated;
  trace.member = -1;
}

/// Instead of one pass back from the mean of all losses: from each micro-batch's own, with its updates behind it.
template <class Optimizer>
constexpr void back(Trace& trace, Differentiation& gradients, int loss) {
  gradients.run(loss, 1, [&] { update<Optimizer>(trace, gradients); });
}
/// Behind the loop, instead of an update there: members are what the loop's last update has left. The norm is none.
constexpr void finish(Trace& trace) {
  for (Member& m : trace.graph.members)
    if (const int carry = carried_in(trace.graph, m.value); carry >= 0 && m.updated >= 0)
      m.updated = trace.graph.carries[carry].result;
  trace.output(trace.graph.name({}, {"gradient_norm"}),
               trace.emit(operation::constant, {}, {{DType::f64, {}}}, Kind::constant));
}

/// Why a graph cannot be run so: a parameter is used on several stages, which have other versions of it.
constexpr Refusal shared_weights(const auto& g) {
  for (const Node& n : g.nodes)
    if (g.schedule->asynchronous && n.phase == Phase::backward && n.transition.collective == Collective::all_reduce &&
        n.transition.axes.contains(g.stages))
      return {Reason::asynchronous, {g.value(n.result).type.layout.rank()}, g.stages};
  return {};
}
/// Why tasks cannot be run so: an update is by one gradient, so it stands behind it, before the next.
constexpr ScheduleRefusal late_update(const Schedule& schedule, int stages, int micro_batches) {
  for (int stage = 0; stage < stages && schedule.asynchronous; ++stage) {
    const Tasks tasks = schedule.tasks(stage, stages, micro_batches, schedule.chunks);
    for (int i = 0; i < tasks.size(); ++i)
      if (const Task t = tasks[i];
          t.work == last_use(schedule) &&
          (i + 1 == tasks.size() || !(tasks[i + 1] == Task{Work::update, t.micro_batch, t.chunk})))
        return {.reason = ScheduleReason::update_late, .rank = stage, .micro_batch = t.micro_batch, .chunk = t.chunk};
  }
  return {};
}

}  // namespace parallel::internals::asynchronous
