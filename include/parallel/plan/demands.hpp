// What a program demands of its plan beyond being derived: that nothing moves unwritten, that memory and bytes stay
// within a budget.
#pragma once
#include <algorithm>
#include <limits>

#include <parallel/plan/check.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/program/tried.hpp>
#include <parallel/program/words.hpp>

namespace parallel {
namespace internals {
struct Demands {
  bool strict = false;
  static constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory = any;  ///< bytes that a rank may need
  /// axes with a budget, and for each the bytes that a rank may send on it in one step
  List<const Axis*, max_axes> on{};
  List<std::int64_t, max_axes> sent{};
};
template <class Program>
constexpr Demands demands_of() {
  if constexpr (trying::tries)
    return {};  // what it would take to meet them is asked
  else if constexpr (requires { Program::demands; })
    return Program::demands;
  else
    return {};
}
}  // namespace internals

/// In a Strict program no activation is communicated in the forward pass unless `to<...>(x)` is written: refused is
/// every collective there that rule 4 or 5 derives, or that Layers need to bring a result to how the next layer takes
/// it. What follows from what is written stays: gradients, what is `Stored`, what goes from stage to stage, an
/// operation's own exchange (a softmax over a split dimension), the completion of the program's result. The mesh does
/// not matter.
template <class Program>
struct Strict : Program {
  static constexpr internals::Demands demands = [] {
    internals::Demands d = internals::demands_of<Program>();
    d.strict = true;
    return d;
  }();
};

/// At most so many bytes on each rank: `Within<Step, PeakMemory<2_GiB>>`.
template <std::int64_t bytes>
struct PeakMemory {
  static constexpr void limit(internals::Demands& d) { d.memory = std::min(d.memory, bytes); }
};
/// A rank sends at most so many bytes on an axis in one step: `Within<Step, Sent<data, 5_MiB>>`.
template <const Axis& axis, std::int64_t bytes>
struct Sent {
  static constexpr void limit(internals::Demands& d) {
    d.on.push_back(&axis);
    d.sent.push_back(bytes);
  }
};
namespace internals {
template <class Word>
concept Budget = requires(Demands& d) {
  Word::limit(d);
};
}  // namespace internals

/// A program that is refused on a mesh where it would need more.
template <class Program, class... Budgets>
struct Within : Program {
  static constexpr int misplaced = internals::building::misplaced_word<Program>({internals::Budget<Budgets>...});
  static constexpr internals::Demands demands = [] {
    internals::Demands d = internals::demands_of<Program>();
    if constexpr (misplaced == 0) (Budgets::limit(d), ...);
    return d;
  }();
};

namespace internals {
template <class X, class... Budgets>
inline constexpr bool building::has_word<Within<X, Budgets...>> = true;
template <class X>
inline constexpr bool building::has_word<Strict<X>> = true;

/// Whether a move is an edge between stages, or gathers behind one what crossed it in slices: `Layers` have both
/// written.
constexpr bool of_edge(const GraphView& g, const Node& node) {
  if (node.transition.along != 0) return true;
  const Node& before = g.maker(node.operands[0]);
  const bool layers = before.transition.collective == Collective::receive || g.origin(node).is(Structural::carry);
  return layers && before.is(Structural::move) && of_edge(g, before);
}

/// The first move of an activation in the forward pass that nobody wrote.
constexpr Fault unwritten(const GraphView& g, const Mesh& mesh) {
  for (const int n : g.order) {
    const Node& node = g.node(n);
    const Transition& t = node.transition;
    if (node.phase != Phase::forward || node.origin < 0 || !communicates(t.collective) || of_edge(g, node)) continue;
    if (g.node(g.value(node.operands[0]).node).is(Structural::parameter)) continue;  // as it is `Stored`
    const Origin origin = g.origin(node);
    bool derived = origin.is(Structural::carry);
    for (int i = 0; i < origin.axes.size(); ++i)
      derived = derived || (t.axes.contains(origin.axes[i]) && origin.rules[i] >= 4);
    if (!derived) continue;
    Fault fault{{Reason::strict,
                 {as_figure(t.from), as_figure(t.to), Communication{g, mesh, {}}.message(node), origin.source.line},
                 t.axes[0]}};
    fault.node = n;
    return fault;
  }
  return {};
}

/// What the types of a program refuse on a mesh. `beside`: other programs over the same parameters.
constexpr Fault check(const GraphView& g, const Mesh& mesh, std::span<const GraphView> beside, const Demands& demands) {
  const Fault fault = check(g, mesh, beside);
  return fault.refusal || !demands.strict ? fault : unwritten(g, mesh);
}

/// Which budget a plan exceeds.
constexpr Fault over_budget(const Plan& plan, const Demands& demands) {
  if (plan.peak_memory() > demands.memory) return {{Reason::over_memory, {plan.peak_memory(), demands.memory}}};
  for (int i = 0; i < demands.on.size(); ++i) {
    const auto sent = static_cast<std::int64_t>(plan.sent(*demands.on[i]));
    if (sent > demands.sent[i]) return {{Reason::over_bytes, {sent, demands.sent[i]}, demands.on[i]}};
  }
  return {};
}
}  // namespace internals

}  // namespace parallel
