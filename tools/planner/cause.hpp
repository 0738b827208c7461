// Why a collective is in the plan: which placements met, which rule of the derivation decided, and what would avoid or move it.
#pragma once
#include <parallel/plan/text.hpp>

#include <string>

namespace planner {

using namespace parallel;

enum class Cause {
  written,     ///< to<...>(x)
  rule,        ///< rules 3 to 5 of the derivation
  statistics,  ///< the operation's own: a softmax, norm or cross entropy over a split dimension
  carried,     ///< rule 7: what a layer returns is brought to how the next one takes it
  returned,    ///< rule 7: a program's result
  stored,      ///< a parameter goes from where it rests to where it enters
  norm         ///< the global norm of the gradients
};

/// Backward: the conjugate of what the forward pass did for this cause.
struct Reason {
  Cause cause = Cause::rule;
  bool conjugate = false;
  int rule = 0;             ///< 3 to 5; 7 where carried or returned; 0: none decided
  Placement from{}, to{};   ///< forward
};

inline Reason reason_of(const GraphView& g, const Node& node) {
  const Origin origin = g.origin(node);
  Reason r;
  r.conjugate = node.phase == Phase::backward;
  r.from = r.conjugate ? conjugate(node.transition.to) : node.transition.from;
  r.to = r.conjugate ? conjugate(node.transition.from) : node.transition.to;
  const Node& maker = g.maker(node.operands[0]);
  const bool leaves_rest = !r.conjugate && maker.operation == &operation::parameter && r.from.split();  // from where it rests to where it enters is one move
  const bool goes_to_rest = r.conjugate && r.from.split() && node.member >= 0 && g.member(node.member).role == Role::parameter &&
                            g.member(node.member).type.layout.on(node.transition.axes[0]) == r.from && g.value(g.member(node.member).value).type.layout.elements() ==
                                g.value(node.result).type.layout.elements();
  if (origin.operation == nullptr || node.phase == Phase::optimizer)
    r.cause = Cause::norm;
  else if (origin.operation == &operation::move)
    r.cause = Cause::written;
  else if (origin.operation == &operation::carry)
    r.cause = Cause::carried, r.rule = 7;
  else if (origin.operation == &operation::returned)
    r.cause = Cause::returned, r.rule = 7;
  else if (origin.operation == &operation::parameter || leaves_rest || goes_to_rest)
    r.cause = Cause::stored;
  else if (!r.conjugate && maker.origin == node.origin && maker.operation != &operation::move)
    r.cause = Cause::statistics;
  else
    for (int i = 0; i < origin.axes.size(); ++i)
      if (node.transition.axes.contains(origin.axes[i]) && origin.rules[i] > r.rule) r.rule = origin.rules[i];
  if (r.cause == Cause::rule && r.conjugate && node.transition.maximum) r.cause = Cause::statistics;
  if (r.cause == Cause::rule && r.conjugate && r.rule <= 2) r.cause = Cause::statistics;
  return r;
}

/// A few words: "rule 4, for add".
inline std::string brief(const GraphView& g, const Node& node) {
  const Reason r = reason_of(g, node);
  const Origin origin = g.origin(node);
  const std::string operation = origin.operation != nullptr ? std::string(origin.operation->name) : "";
  std::string words;
  switch (r.cause) {
    case Cause::written: words = "written, to<>"; break;
    case Cause::rule: words = "rule " + std::to_string(r.rule) + ", for " + operation; break;
    case Cause::statistics: words = operation + "'s own"; break;
    case Cause::carried: words = "rule 7, the next layer"; break;
    case Cause::returned: words = "rule 7, the result"; break;
    case Cause::stored: words = "Stored"; break;
    case Cause::norm: words = "the gradients' norm"; break;
  }
  return r.conjugate ? "conjugate of " + text(r.from) + " -> " + text(r.to) + ": " + words : words;
}

inline std::string place_of(const Source& source) { return source.line > 0 ? printing::file_name(source.file) + ":" + std::to_string(source.line) : ""; }

/// What met, in words: "f32[4, 8] +tensor (mlp.down) and f32[4, 8]".
inline std::string met(const GraphView& g, const Origin& origin) {
  std::string words;
  for (int i = 0; i < origin.operands.size(); ++i) {
    const Value& v = g.value(origin.operands[i]);
    words += (i == 0 ? "" : i + 1 == origin.operands.size() ? " and " : ", ") + text(v.type);
    if (v.member >= 0) words += " (" + std::string(g.member(v.member).path.view()) + ")";
  }
  return words;
}

namespace causing {
inline std::string because(const GraphView& g, const Node& node, const Reason& r, const std::string& axes) {
  const Origin origin = g.origin(node);
  const std::string operation = origin.operation != nullptr ? std::string(origin.operation->name) : "";
  switch (r.cause) {
    case Cause::written: return "You wrote it: to<...> moves the value " + met(g, origin) + ".";
    case Cause::statistics:
      return operation + " works over a dimension that is split on " + axes + ", so the ranks exchange their rows' statistics; met: " + met(g, origin) + ".";
    case Cause::carried: return "What a layer returns is brought to the placement with which the next layer takes it (rule 7).";
    case Cause::returned: return "A program's result is completed, so that every rank returns the same bits (rule 7).";
    case Cause::stored: return "The parameter rests split on " + axes + " (Stored) and enters its operation whole.";
    case Cause::norm: return "The global norm of the gradients adds what each rank holds of them.";
    case Cause::rule: break;
  }
  const std::string here = operation + " meets " + met(g, origin) + ". ";
  if (r.rule == 3)
    return here + (r.from == Invariant && r.to == Broadcast
                       ? "A value that is whole beside one that is split on " + axes + " is used differently by each rank: Invariant becomes Broadcast, for free (rule 3)."
                       : "A whole operand is sliced to what the row of the split operands asks, for free (rule 3).");
  if (r.rule == 4) return here + "It cannot take a pending sum (Partial on " + axes + "), so the sum is completed (rule 4).";
  if (r.rule == 5) return here + "The parameter stays as annotated, so the activation that is split on " + axes + " is gathered beside it (rule 5).";
  return here;
}
inline std::string advice(const GraphView& g, const Node& node, const Reason& r, const std::string& axes) {
  const bool several = node.transition.axes.size() > 1;
  switch (r.cause) {
    case Cause::written: return "Drop the to<...> and see what the rule derives instead, or write it where the value is smaller.";
    case Cause::statistics: return "It vanishes where that dimension is whole on " + axes + ": write to<On<" + axes + ", Invariant>>(x) before, at the price of a gather.";
    case Cause::carried: return "It vanishes if the block returns what it takes; declare the hidden state Split on " + axes + " to make it a reduce-scatter of half the bytes.";
    case Cause::returned: return "A scalar costs only latency; return a tensor that is Split on " + axes + " to keep its parts.";
    case Cause::stored:
      return "Drop Stored<" + axes + ", ...> to keep the parameter whole on every rank: no gather forward, one all-reduce of its gradient instead of a reduce-scatter, more memory.";
    case Cause::norm: return "It is one number; only parameters that are split need it.";
    case Cause::rule: break;
  }
  const bool parameter = node.member >= 0 && g.member(node.member).role == Role::parameter &&
                         g.value(g.member(node.member).value).type.layout.elements() == g.value(node.result).type.layout.elements();
  if (r.conjugate && r.from == Invariant && r.to == Broadcast && !parameter)
    return "It is the price of a whole activation that meets a parameter split on " + axes + " (Megatron-LM's f). A hidden state declared Split on " + axes +
           " makes it a reduce-scatter here and a gather in the forward pass.";
  if (r.conjugate && r.from == Invariant && r.to == Broadcast)
    return "It is the price of splitting on " + axes + ", once per step for a parameter. Stored<" + axes +
           ", Split<0>> on the parameter makes it a reduce-scatter of half the bytes here (ZeRO) and a gather of the other half later.";
  if (r.conjugate) return "It goes where its partner in the forward pass goes.";
  if (r.rule == 4)
    return node.transition.to.split() ? "It already is the cheaper form, a reduce-scatter; it vanishes only where no pending sum arises."
                                      : "It vanishes where the dimension that is summed over is whole on " + axes + ". To move it: to<On<" +
                                            (several ? std::string("axis") : axes) +
                                            ", Split<d>>>(x) makes it a reduce-scatter of half the bytes, and the other half a gather where the value is whole again. Sums that are "
                                            "added before they are completed are completed once: x + (a + m), not x + a + m.";
  if (r.rule == 5) return "Split the parameter on " + axes + " as the activation asks, or keep the activation whole from the start, to avoid it.";
  return "Annotate both operands alike on " + axes + " to avoid it.";
}
}  // namespace causing

/// Sentences for `tools/plan --why`: what, where, why, at which price, and what to write instead.
inline std::string why(const Plan& plan, const Node& node, std::int64_t times) {
  const GraphView& g = plan.graph;
  const Reason r = reason_of(g, node);
  const Transition& t = node.transition;
  const std::string axes = text(t.axes), place = place_of(g.origin(node).source), member = printing::member_path(plan, node);
  std::string words = std::string(name_of(node.phase)) + ": " + std::string(name_of(t.collective)) + (t.maximum ? " max" : "") + " on " + axes + " of " + text(g.value(node.operands[0]).type);
  if (member != "-") words += ", made by " + member;
  if (!place.empty()) words += ", at " + place;
  words += "\n  " + text(t.from) + " -> " + text(t.to) + ". ";
  if (r.conjugate && r.cause != Cause::statistics)
    words += "It is the conjugate of " + text(r.from) + " -> " + text(r.to) + " in the forward pass: the gradient goes back the way that the value came. There: ";
  words += causing::because(g, node, r, axes) + "\n  Price: " + printing::bytes(static_cast<double>(plan.all.message(node))) + " among " +
           std::to_string(plan.mesh.extent(t.axes)) + " ranks; each sends " + printing::bytes(plan.all.sent(node)) + ", " + std::to_string(times) +
           (times == 1 ? " time" : " times") + " a step.\n  " + causing::advice(g, node, r, axes) + "\n";
  return words;
}

/// Every collective whose member's path is `path` or lies below it; a star and a number both stand for layers. Empty: there is none.
inline std::string why(const Plan& plan, const std::string& path) {
  const auto matches = [&](std::string_view member) {
    std::size_t i = 0, j = 0;
    while (i < path.size() && j < member.size()) {
      if (member[j] == '*') {
        ++j;
        if (path[i] == '*') ++i;
        while (i < path.size() && path[i] >= '0' && path[i] <= '9') ++i;
      } else if (path[i++] != member[j++]) {
        return false;
      }
    }
    return i == path.size() && (j == member.size() || member[j] == '.');
  };
  std::string words;
  plan.all.each([&](const Node& node, std::int64_t times) {
    const int member = node.member;
    const Origin origin = plan.graph.origin(node);
    const bool met = origin.member >= 0 && matches(plan.graph.member(origin.member).path.view());
    if (met || (member >= 0 && matches(plan.graph.member(member).path.view()))) words += (words.empty() ? "" : "\n") + why(plan, node, times);
  });
  return words;
}

}  // namespace planner
