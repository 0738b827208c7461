// What of the program a collective comes from: the rule of the derivation that asked for it, the operation, and every
// member that its cause includes.
#pragma once
#include <algorithm>

#include "member_path.hpp"

namespace planner {

enum class Cause {
  written,     ///< to<...>(x)
  rule,        ///< rules 3 to 5 of the derivation
  ring,        ///< attention's own: keys and values come around, and the sums of their gradients
  statistics,  ///< the operation's own: a softmax, norm or cross entropy over a split dimension
  carried,     ///< rule 7: what a layer returns is brought to how the next one takes it
  returned,    ///< rule 7: a program's result
  stored,      ///< a parameter goes from where it rests to where it enters
  together,    ///< gradients of vectors, completed in one call
  norm,        ///< the global norm of the gradients
  edge,        ///< from one stage of a pipeline to the next, or back
  shared       ///< several stages of a pipeline have what is one parameter, and a term of its gradient each
};

/// Backward: the conjugate of what the forward pass did for this cause.
struct Reason {
  Cause cause = Cause::rule;
  bool conjugate = false;
  int rule = 0;            ///< 3 to 5; 7 where carried or returned; 0: none decided
  Placement from{}, to{};  ///< forward
  bool again = false;      ///< the same was done forward, and what it gave not kept
  bool updated = false;    ///< a parameter of which each rank has updated its part
};

/// Whether an axis splits what belongs to a parameter where it is not in use: it, or its optimizer's states.
inline bool stored(const GraphView& g, int member, const Axis* axis) {
  for (std::size_t m = 0; m < g.members.size(); ++m)
    if ((static_cast<int>(m) == member || g.members[m].of == member) && g.members[m].type.layout.on(axis).split())
      return true;
  return false;
}
/// Whether what a node gives is as large as the parameter that it is charged to, or as one of its layers.
inline bool is_parameter_or_layer(const GraphView& g, const Node& node) {
  if (node.member < 0 || g.member(node.member).role != Role::parameter) return false;
  const Member& m = g.member(node.member);
  const std::int64_t given = g.value(node.result).type.layout.elements(), all = m.type.layout.elements();
  return given == all || given * m.layers == all;
}

inline Reason reason_of(const GraphView& g, const Node& node) {
  const Origin origin = g.origin(node);
  Reason r;
  const bool gathers = gathers_parameter(g, node);
  r.again = g.value(node.result).again >= 0;
  r.conjugate = node.phase == Phase::backward && !r.again && !gathers;
  r.updated = node.phase == Phase::optimizer && node.transition.collective == Collective::all_gather;
  r.from = r.conjugate ? conjugate(node.transition.to) : node.transition.from;
  r.to = r.conjugate ? conjugate(node.transition.from) : node.transition.to;
  const Node& maker = g.maker(node.operands[0]);
  // from where it rests to where it enters is one move
  const bool leaves_rest = gathers || r.updated;
  const bool goes_to_rest = r.conjugate && r.from.split() && is_parameter_or_layer(g, node) &&
                            stored(g, node.member, node.transition.axes[0]);
  const bool on_stages = g.stages != nullptr && node.transition.axes.contains(g.stages);
  if (node.transition.along != 0)
    r.cause = Cause::edge;
  else if (on_stages && r.conjugate && r.from == Invariant && r.to == Broadcast)
    r.cause = Cause::shared;
  else if (origin.is(Structural::bucket))
    r.cause = Cause::together;
  else if (leaves_rest)
    r.cause = Cause::stored;
  else if (origin.operation == nullptr || (node.phase == Phase::optimizer && !origin.is(Structural::returned)))
    r.cause = Cause::norm;
  else if (origin.is(Structural::move))
    r.cause = Cause::written;
  else if (origin.is(Structural::carry)) {
    r.cause = Cause::carried;
    r.rule = 7;
  } else if (origin.is(Structural::returned)) {
    r.cause = Cause::returned;
    r.rule = 7;
  } else if (origin.is(Structural::parameter) || goes_to_rest)
    r.cause = Cause::stored;
  else if (node.transition.collective == Collective::rotate)
    r.cause = Cause::ring;
  else if (!r.conjugate && maker.origin == node.origin && !maker.is(Structural::move))
    r.cause = Cause::statistics;
  else
    for (int i = 0; i < origin.axes.size(); ++i)
      if (node.transition.axes.contains(origin.axes[i]) && origin.rules[i] > r.rule) r.rule = origin.rules[i];
  if (r.cause == Cause::rule && r.conjugate && node.transition.maximum) r.cause = Cause::statistics;
  if (r.cause == Cause::rule && r.conjugate && r.rule <= 2) r.cause = Cause::statistics;
  return r;
}

inline std::string place_of(const Source& source) {
  return source.line > 0 ? file_name(source.file) + ":" + std::to_string(source.line) : "";
}

/// A move on some axes, as one would write it: "to<On<tensor, Split<1>>>".
inline std::string move_words(const AxisList& axes, const Type& to) {
  std::string words;
  for (const Axis* a : axes)
    words += (words.empty() ? "" : ", ") + ("On<" + std::string(a->text()) + ", ") + text(to.layout.on(a)) + ">";
  return "to<" + words + ">";
}
/// What the user applied: "matmul", "to<On<tensor, Invariant>>".
inline std::string spelled(const GraphView& g, const Origin& origin) {
  if (origin.is(Structural::returned)) return "(the result)";
  if (origin.is(Structural::carry)) return "(the next layer)";
  if (!origin.is(Structural::move) || origin.operands.empty() || origin.result < 0)
    return std::string(origin.operation->name);
  const Type &from = g.value(origin.operands[0]).type, &to = g.value(origin.result).type;
  AxisList axes, moved;
  from.layout.collect(axes);
  to.layout.collect(axes);
  for (const Axis* a : axes)
    if (!(from.layout.on(a) == to.layout.on(a))) moved.push_back(a);
  return move_words(moved, to);
}

/// Whom an edge between stages leads to: "to the next stage".
inline std::string edge_words(const Transition& t) {
  const bool sends = t.collective == Collective::send;
  return (sends ? "to " : "from ") + std::string((t.along > 0) == sends ? "the next stage" : "the stage before");
}

/// A few words: "rule 4, for add".
inline std::string brief(const GraphView& g, const Node& node) {
  const Reason r = reason_of(g, node);
  if (r.cause == Cause::edge) return edge_words(node.transition);
  const Origin origin = g.origin(node);
  const std::string operation = origin.operation != nullptr ? std::string(origin.operation->name) : "";
  std::string words;
  switch (r.cause) {
    case Cause::written: words = "you wrote it"; break;
    case Cause::rule: words = "rule " + std::to_string(r.rule) + ", for " + operation; break;
    case Cause::ring: return operation + "'s ring" + (r.conjugate ? ", for gradients" : r.again ? ", again" : "");
    case Cause::statistics: words = operation + "'s own"; break;
    case Cause::carried: words = "rule 7, the next layer"; break;
    case Cause::returned: words = "rule 7, the result"; break;
    case Cause::stored: words = "Stored"; break;
    case Cause::together: return std::to_string(origin.operands.size()) + " gradients in one call";
    case Cause::norm: words = "the gradients' norm"; break;
    case Cause::shared: words = "several stages use it"; break;
    case Cause::edge: break;
  }
  if (r.again) words += ", again";
  return r.conjugate ? "conjugate of " + text(r.from) + " -> " + text(r.to) + ": " + words : words;
}

/// What a value comes from.
inline int origin_of(const GraphView& g, int value) {
  const Node& maker = g.maker(value);
  for (std::size_t o = 0; o < g.origins.size() && maker.results > 1; ++o)
    if (g.origins[o].result == value) return static_cast<int>(o);
  return maker.origin;
}

/// The operations through which a value became, and stayed, a pending sum. By their origins.
struct PendingSum {
  std::vector<int> path{};
  std::vector<int> begun{};  ///< those of them that met no pending sum
};
inline PendingSum pending_sum(const GraphView& g, const Origin& met, const AxisList& axes) {
  const auto pending = [&](int value) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const Axis* a) { return g.value(value).type.layout.on(a).pending(); });
  };
  PendingSum sum;
  std::vector<int> values(met.operands.begin(), met.operands.end());
  std::vector<bool> seen(g.values.size(), false);
  while (!values.empty()) {
    const int value = values.back();
    values.pop_back();
    if (seen[static_cast<std::size_t>(value)] || !pending(value)) continue;
    seen[static_cast<std::size_t>(value)] = true;
    const Node& maker = g.maker(value);
    if (maker.origin < 0 || !maker.transition.axes.empty() || !maker.operation->computes ||
        maker.is(Structural::copy)) {
      // nobody's operation: it comes with what it takes
      values.insert(values.end(), maker.operands.begin(), maker.operands.end());
      continue;
    }
    const int origin = origin_of(g, value);
    const Origin& made = g.origins[static_cast<std::size_t>(origin)];
    sum.path.push_back(origin);
    if (std::none_of(made.operands.begin(), made.operands.end(), pending)) sum.begun.push_back(origin);
    values.insert(values.end(), made.operands.begin(), made.operands.end());
  }
  return sum;
}

/// The members that a collective's cause includes: whose value moves, what that met and is not whole, and what left the
/// sum that is completed.
inline std::vector<int> members_of_cause(const GraphView& g, const Node& node, const AxisList& axes) {
  const Origin origin = g.origin(node);
  const Reason reason = reason_of(g, node);
  std::vector<int> result;
  const auto add = [&](int member) {
    if (member >= 0 && std::find(result.begin(), result.end(), member) == result.end()) result.push_back(member);
  };
  const auto placed = [&](const Type& type, auto is) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis* a) { return is(type.layout.on(a)); });
  };
  add(node.member);
  if (reason.cause == Cause::edge) return result;
  for (const int v : origin.operands)
    if (reason.rule == 5 || placed(g.value(v).type, [](Placement p) { return !(p == Invariant); }))
      add(member_of(g, v));
  for (const int v : origin.operands)
    if (reason.cause == Cause::together) add(g.value(v).member);
  for (const int o : pending_sum(g, origin, axes).path) add(g.origins[static_cast<std::size_t>(o)].member);
  for (std::size_t m = 0; m < g.members.size(); ++m)  // a parameter that no gradient reaches is not updated
    if (reason.cause == Cause::norm && g.members[m].updated >= 0 && g.members[m].role == Role::parameter &&
        placed(g.members[m].type, [](Placement p) { return p.split(); }))
      add(static_cast<int>(m));
  return result;
}

}  // namespace planner
