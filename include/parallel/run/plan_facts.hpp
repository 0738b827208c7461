// A plan as a fact that ranks compare: its program, node by node, and its mesh. What differs between stages, and lines
// and spellings, are no part of it.
#pragma once
#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/plan/object.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/plan/stage.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals {

namespace agreeing {

template <class Out>
void placement(Out& out, const Placement& p) {
  constexpr std::string_view names[] = {"Invariant", "Broadcast", "Partial", "Split"};
  out.name(p.kind >= PlacementKind::at ? text(p) : names[static_cast<int>(p.kind)]);
  if (p.split()) out.word(p.dim);
  if (p.flat) out.name("flat");
  if (p.alone) out.name("alone");
}
template <class Out>
void type(Out& out, const Type& t) {
  out.name(name_of(t.dtype));
  for (const Dim& d : t.layout.dims) {
    out.word(d.size);
    for (const Axis* a : d) out.name(a->text());
    if (d.ordered()) {
      out.word(static_cast<int>(d.order));
      out.name(d.ordered_for->text());
    }
  }
  for (const Placed& p : t.layout.others) {
    out.name(p.axis->text());
    placement(out, p.placement);
  }
}
/// Says all of a plan that ranks must have alike, to a Hash or a Text.
template <class Out>
void describe(Out& out, const Plan& plan) {
  const GraphView& g = plan.graph;
  out.name("mesh");
  for (int i = 0; i < plan.mesh.count; ++i) {
    out.name(plan.mesh.axes[i].axis->text());
    out.word(plan.mesh.axes[i].size);
  }
  out.end_of_line();
  if (g.stages != nullptr) {
    out.name("stages");
    out.name(g.stages->text());
    out.name(g.schedule->name);
    out.word(g.schedule->chunks);
    out.word(g.balanced);
    out.end_of_line();
  }
  out.name("scalars");
  for (const Name& s : g.scalars) out.name(g.text(s));
  out.end_of_line();
  constexpr std::string_view loops[] = {"program", "layers", "micro-batches", "steps"};
  for (const Region& r : g.regions) {
    out.name(loops[static_cast<int>(r.kind)]);
    out.word(r.blocks);
    if (!r.staged) out.word(r.count);  // where layers are cut by cost, stages have different numbers of them
  }
  out.end_of_line();
  for (const Member& m : g.members) {
    out.name(g.path(m));
    type(out, m.type);
    out.word(m.layers);
    out.word(static_cast<int>(m.initializer.kind));
    out.number(m.initializer.scale);
    out.word(m.initializer.decays);
    out.end_of_line();
  }
  // Numbers of a record that nothing here says by itself.
  const auto rest = [&]<class T>(const T& field) {
    if constexpr (object::Number<T> && !std::is_floating_point_v<T>) out.word(static_cast<std::int64_t>(field));
  };
  for (const Node& n : g.nodes) {
    out.name(name_of(n.phase));
    out.name(n.operation->name);
    for (const std::int64_t i : n.ints) out.word(i);
    out.number(n.reals[0]);
    out.number(n.reals[1]);
    if (const Transition& t = n.transition; !t.axes.empty()) {
      out.name(name_of(t.collective));
      out.word(t.maximum);
      for (const Axis* a : t.axes) out.name(a->text());
      for (const Placement& p : {t.from, t.to, t.among}) placement(out, p);
      out.word(t.along);
    }
    for (const int o : n.operands) out.word(o);
    for (int r = 0; r < n.results; ++r) type(out, g.value(n.result + r).type);
    meta::with_members(n, [&](const auto&... fields) { (rest(fields), ...); });
    out.end_of_line();
  }
  for (const Carry& c : g.carries) {
    meta::with_members(c, [&](const auto&... places) { (out.word(places), ...); });
    out.end_of_line();
  }
  for (const Output& o : g.outputs) {
    out.word(o.value);
    out.name(g.text(o.name));
  }
  out.end_of_line();
  if (g.stages == nullptr) {  // what runs; stages each have their own part of it, in the order of their schedule
    for (const Event& e : plan.events) {
      out.word(static_cast<int>(e.kind));
      out.word(e.node);
      out.word(e.nodes);
      out.end_of_line();
    }
  } else if (const Pipeline p = pipeline_of(g, plan.mesh); p.trained) {
    for (int stage = 0; stage < p.stages; ++stage) {
      for (const Task& t : g.schedule->tasks(stage, p.stages, p.micro_batches, p.chunks)) {
        out.word(static_cast<int>(t.work));
        out.word(t.micro_batch);
        out.word(t.chunk);
      }
      out.end_of_line();
    }
  }
}

}  // namespace agreeing

/// `plan` must outlive the fact.
inline Fact fact_of(const Plan& plan) {
  agreeing::Hash hash;
  agreeing::describe(hash, plan);
  return always({"plan", hash.value(), [&plan] {
                   agreeing::Text text;
                   agreeing::describe(text, plan);
                   return text.value();
                 }});
}

/// Compiler and vectors.
inline Fact fact_of_numerics() { return fact("numerics", numerics()); }
inline bool numerics_may_differ() { return agreeing::may_differ(fact_of_numerics()); }

/// A scalar, or a hyperparameter that becomes one. Where numerics may differ it is compared as a float: other machines
/// compute it otherwise in its last bits.
inline double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }
inline Fact fact_of_scalar(std::string_view name, double value) {
  return always(fact(std::string(name), numerics_may_differ() ? rounded(value) : value));
}

}  // namespace parallel::internals
