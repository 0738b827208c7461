// Why a collective is in the plan, in sentences: which placements met, which rule of the derivation decided, its price,
// and what would avoid or move it.
#pragma once
#include "cause.hpp"

namespace planner {

/// What met, in words: "f32[4, 8] +tensor (from mlp.down) and f32[4, 8] (input.0)".
inline std::string met(const GraphView& g, const Origin& origin) {
  std::vector<std::string> words;
  for (const int v : origin.operands) {
    const int itself = member_of(g, v), from = g.value(v).member;
    words.push_back(text(g.value(v).type) + (itself >= 0                         ? " (" + path_of(g, itself) + ")"
                                             : g.value(v).kind == Kind::constant ? " (a constant)"
                                             : from >= 0                         ? " (from " + path_of(g, from) + ")"
                                                                                 : ""));
  }
  return listed(words);
}

/// "4 times a step, in each of 4 layers"
inline std::string how_often(const Plan& plan, const Node& node) {
  const auto chunks = std::count_if(plan.events.begin(), plan.events.end(), [&](const Event& e) {
    return e.kind == EventKind::start && !starts_next(e) && &plan.graph.node(e.node) == &node;
  });
  const std::int64_t times = plan.graph.times(node) * chunks, layers = plan.all.logical(node);
  std::string words = times == 1 ? "once a step" : std::to_string(times) + " times a step";
  for (int r = node.region; r > 0; r = plan.graph.region(r).parent) {
    const Region& region = plan.graph.region(r);
    const std::string count = std::to_string(region.count), blocks = std::to_string(region.blocks);
    const std::string repeated = region.kind == RegionKind::steps ? " steps" : " layers";
    words += r == node.in_last         ? ", in the last of " + count + " micro-batches"
             : !goes_back(region.kind) ? ", for each of " + count + " micro-batches"
             : region.blocks == 1      ? ", in each of " + count + repeated
                                       : ", in each of " + count + " groups of " + blocks + repeated;
  }
  if (chunks > 1) words += ", in each of " + std::to_string(chunks) + " chunks";
  return words +
         (layers > 1 ? ", for all " + std::to_string(layers) +
                           (plan.graph.origin(node).is(Structural::bucket) ? " gradients together" : " layers together")
                     : "");
}

/// How many micro-batches a step has; 1 where it has no such loop.
inline int micro_batches(const GraphView& g) {
  for (const Region& r : g.regions)
    if (r.kind == RegionKind::micro_batches) return r.count;
  return 1;
}

namespace causing {
/// " What left it pending: matmul with w2 at mlp.cpp:9."
inline std::string left_pending(const GraphView& g, const Origin& origin, const AxisList& axes) {
  std::vector<std::string> begun;
  for (const int o : pending_sum(g, origin, axes).begun) {
    const Origin& made = g.origins[static_cast<std::size_t>(o)];
    std::string words = spelled(g, made);
    std::vector<std::string> of;
    for (const int v : made.operands)
      if (member_of(g, v) >= 0) of.push_back(path_of(g, member_of(g, v)));
    if (!of.empty()) words += " with " + listed(of);
    if (const std::string place = place_of(made.source); !place.empty()) words += " at " + place;
    begun.push_back(words);
  }
  return begun.empty() ? "" : " What left it pending: " + listed(begun) + ".";
}

inline std::string because(const GraphView& g, const Reason& r, const Origin& origin, const AxisList& on) {
  const std::string operation = origin.operation != nullptr ? std::string(origin.operation->name) : "", axes = text(on);
  const std::string pending = r.from.pending() ? left_pending(g, origin, on) : "";
  switch (r.cause) {
    case Cause::written:
      return "You wrote it: " + spelled(g, origin) + " moves the value " + met(g, origin) + "." + pending;
    case Cause::ring:
      return operation + " attends to the keys of all ranks of " + axes + " (Context::ring): " +
             (r.conjugate || r.again ? "keys and values come around again, and the sums of their gradients behind them"
                                     : "keys and values come around") +
             ", a part from each rank to the next; met: " + met(g, origin) + ".";
    case Cause::statistics:
      return operation + " works over a dimension that is split on " + axes +
             ", so the ranks exchange their rows' statistics; met: " + met(g, origin) + ".";
    case Cause::carried:
      return "What a layer returns is brought to the placement with which the next layer takes it (rule 7)." + pending;
    case Cause::returned:
      return "A program's result is completed, so that every rank returns the same bits (rule 7)." + pending;
    case Cause::stored:
      if (r.updated)
        return "Each rank has updated the part of the parameter whose optimizer state it keeps on " + axes +
               " (Stored); the parts are gathered in its place.";
      return "The parameter rests split on " + axes + " (Stored) and enters its operation whole" +
             (r.again ? "; what was gathered forward was not kept (Gathered::per_use)." : ".");
    case Cause::together: {
      std::vector<std::string> members;
      for (const int v : origin.operands)
        if (g.value(v).member >= 0) members.push_back(path_of(g, g.value(v).member));
      return "these vectors enter operations beside activations that are split on " + axes +
             "; their gradients are completed in one call: those of " + listed(members) + ".";
    }
    case Cause::shared:
      return "Several stages use this parameter, and each has a term of its gradient: they are added.";
    case Cause::norm:
      return "The global norm of the gradients adds what each rank holds of those that are split on " + axes + ".";
    case Cause::rule:
    case Cause::edge: break;
  }
  const std::string here = operation + " meets " + met(g, origin) + ". ";
  if (r.rule == 3)
    return here + (r.from == Invariant && r.to == Broadcast
                       ? "A value that is whole beside one that is split on " + axes +
                             " is used differently by each rank: Invariant becomes Broadcast, for free (rule 3)."
                       : "A whole operand is sliced to what the row of the split operands asks, for free (rule 3).");
  if (r.rule == 4)
    return here + "It cannot take a pending sum (Partial on " + axes + "), so the sum is completed (rule 4)." + pending;
  if (r.rule == 5)
    return here + "The parameter stays as annotated, so the activation that is split on " + axes +
           " is gathered beside it (rule 5).";
  return here;
}

inline std::string advice(const GraphView& g, const Node& node, const Reason& r, const AxisList& on) {
  const std::string axes = text(on), axis(on[0]->text());  // code names one axis, as On and Stored do
  switch (r.cause) {
    case Cause::written:
      return "Drop the to<...> and see what the rule derives instead, or write it where the value is smaller.";
    case Cause::ring:
      return "Context::gathered gathers all keys and values at once, Context::ulysses brings all to the heads by "
             "all-to-all.";
    case Cause::statistics:
      return "It vanishes where that dimension is whole on " + axes + ": write to<On<" + axis +
             ", Invariant>>(x) before, at the price of a gather.";
    case Cause::carried:
      return "It vanishes if the block returns what it takes; declare the hidden state Split on " + axes +
             " to make it a reduce-scatter of half the bytes.";
    case Cause::returned:
      return "A scalar costs only latency; return a tensor that is Split on " + axes + " to keep its parts.";
    case Cause::stored:
      return "Drop Stored<" + axis +
             ", ...> to keep the parameter whole on every rank: no gather forward, one all-reduce of its gradient instead of a reduce-scatter, more memory.";
    case Cause::together:
      return "It costs little more than latency, and vanishes where those activations are whole on " + axes + ".";
    case Cause::norm: return "It is one number; only parameters that are split need it.";
    case Cause::shared:
      return "It is the price of one parameter on several stages, once per step; it vanishes where each use has a parameter of its own.";
    case Cause::rule:
    case Cause::edge: break;
  }
  const bool parameter =
      node.member >= 0 && g.member(node.member).role == Role::parameter &&
      g.value(g.member(node.member).value).type.layout.elements() == g.value(node.result).type.layout.elements();
  if (r.conjugate && r.from == Invariant && r.to == Broadcast && !parameter)
    return "It is the price of a whole activation that meets a parameter split on " + axes +
           " (Megatron-LM's f). A hidden state declared Split on " + axes +
           " makes it a reduce-scatter here and a gather in the forward pass.";
  if (r.conjugate && r.from == Invariant && r.to == Broadcast)
    return "It is the price of splitting on " + axes + ", once per step for a parameter. Stored<" + axis +
           ", Split<0>> on the parameter makes it a reduce-scatter of half the bytes here (ZeRO) and a gather of the other half later.";
  if (r.conjugate && r.from == Invariant && r.to.split())
    return "It is the price of a slice of a whole value: declared Split on " + axes +
           " where it is made, it is neither sliced nor gathered.";
  if (r.conjugate) return "It vanishes, or moves, together with its partner in the forward pass.";
  if (r.rule == 4)
    return node.transition.to.split()
               ? "It already is the cheaper form, a reduce-scatter; it vanishes only where no pending sum arises."
               : "It vanishes where the dimension that is summed over is whole on " + axes + ". To move it: to<On<" +
                     axis +
                     ", Split<d>>>(x) makes it a reduce-scatter of half the bytes, and the other half a gather where the value is whole again. Sums that are "
                     "added before they are completed are completed once: x + (a + m), not x + a + m.";
  if (r.rule == 5)
    return "Split the parameter on " + axes +
           " as the activation asks, or keep the activation whole from the start, to avoid it.";
  return "Annotate both operands alike on " + axes + " to avoid it.";
}

/// Where micro-batches are accumulated: what stands outside their loop, or is in the last of them, happens once.
inline std::string accumulated(const GraphView& g, const Node& node, const Reason& r) {
  const int count = micro_batches(g);
  if (count == 1 || (node.region != 0 && node.in_last < 0) || r.cause == Cause::norm) return "";
  const std::string all = " the " + std::to_string(count) + " micro-batches";
  if (node.in_last >= 0)
    return "The gradients of" + all + " are added first, still pending; it happens in the last of them.";
  if (node.phase == Phase::backward)
    return "The gradients of" + all + " are added first, still pending; it happens once, after the accumulation.";
  return r.cause == Cause::returned
             ? "The losses of" + all + " are added first, still pending; it happens once, after them."
             : "It happens once, before" + all + ".";
}
}  // namespace causing

/// The same for an edge between stages.
inline std::vector<std::string> explained_edge(const Plan& plan, const Node& node) {
  const Transition& t = node.transition;
  const bool sends = t.collective == Collective::send;
  const std::string layers = "The layers are shared out over " + text(t.axes) + ": ";
  const std::string what = t.along > 0
                               ? (sends ? "what those of this stage return goes to the next one."
                                        : "those of this stage take what the stage before has handed on.")
                               : (sends ? "the gradient of what those of this stage took goes to the stage before."
                                        : "the gradient of what those of this stage returned comes from the next one.");
  return {
      layers + what,
      "Price: " + printing::bytes(static_cast<double>(plan.all.message(node))) +
          (sends ? ", " : ", which the other stage counts, as it sends them, ") + how_often(plan, node) + ".",
      "It is the price of a pipeline: a hidden state, however many layers a stage has. More chunks send it more often, and wait less."};
}

/// Sentences for one collective: why, at which price, and what to write instead.
inline std::vector<std::string> explained(const Plan& plan, const Node& node) {
  const GraphView& g = plan.graph;
  const Reason r = reason_of(g, node);
  const Transition& t = node.transition;
  if (r.cause == Cause::edge) return explained_edge(plan, node);
  const AxisList on = sending_axes(t.axes, plan.mesh);
  std::string cause = text(t.from) + " -> " + text(t.to) + ". ";
  if (r.conjugate && r.cause != Cause::statistics && r.cause != Cause::ring)
    cause += "It is the conjugate of " + text(r.from) + " -> " + text(r.to) +
             " in the forward pass: the gradient goes back the way that the value came. There: ";
  std::vector<std::string> said{cause + causing::because(g, r, g.origin(node), on)};
  if (r.again && r.cause != Cause::stored)
    said.push_back("The backward pass does it again, as what it gave is not kept (recompute).");
  if (const std::string accumulated = causing::accumulated(g, node, r); !accumulated.empty())
    said.push_back(accumulated);
  said.push_back("Price: " + printing::bytes(static_cast<double>(plan.all.message(node))) + " among " +
                 std::to_string(participants(t, plan.mesh)) + " ranks; each sends " +
                 printing::bytes(plan.all.sent(node)) + ", " + how_often(plan, node) + ".");
  said.push_back(causing::advice(g, node, r, on));
  return said;
}
/// The same below a line that says what it is and where.
inline std::string why(const Plan& plan, const Node& node) {
  const std::string place = place_of(plan.graph.origin(node).source), member = member_path(plan, node);
  std::string words = std::string(name_of(node.phase)) + ": " + std::string(name_of(node.transition.collective)) +
                      (node.transition.maximum ? " max" : "") + " on " +
                      text(sending_axes(node.transition.axes, plan.mesh)) + " of " +
                      text(plan.graph.value(node.operands[0]).type);
  if (member != "-") words += ", charged to " + member;
  if (!place.empty()) words += ", at " + place;
  for (const std::string& sentences : explained(plan, node)) words += "\n  " + sentences;
  return words + "\n";
}

}  // namespace planner
