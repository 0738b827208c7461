// Why a member causes what it causes: every collective whose cause includes it, or why there is none.
#pragma once
#include <parallel/plan/events.hpp>

#include "why.hpp"

namespace planner {

namespace quiet {
/// "on tensor its table takes them as they lie (rule 2)": what the rule of derivation said where a member is used, on
/// each axis of several ranks.
inline std::string decided(const Plan& plan, const Origin& use) {
  constexpr const char* words[] = {"nothing is decided",
                                   "all is whole, so each rank does the whole of it (rule 1)",
                                   "they fit as they lie (rule 2)",
                                   "they fit after moves that are free (rule 3)",
                                   "what is pending beside it is completed (rule 4)",
                                   "what is split beside it is gathered (rule 5)"};
  std::vector<std::string> said;
  for (int i = 0; i < plan.mesh.count; ++i) {
    if (plan.mesh.axes[i].size == 1) continue;
    int rule = 1;
    for (int a = 0; a < use.axes.size(); ++a)
      if (use.axes[a] == plan.mesh.axes[i].axis) rule = use.rules[a];
    said.push_back("on " + std::string(plan.mesh.axes[i].axis->text()) + " " + words[rule]);
  }
  return listed(said);
}
/// What would be sent on axes that have one rank here.
inline std::string on_one_rank(const Plan& plan, int member) {
  const GraphView& g = plan.graph;
  const Vector<bool> happens = needed(g, plan.mesh);
  std::vector<std::string> would;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (!happens[static_cast<int>(n)] || node.transition.axes.empty() || !communicates(node.transition.collective) ||
        calls(node, plan.mesh))
      continue;
    const std::vector<int> members = members_of_cause(g, node, node.transition.axes);
    if (std::find(members.begin(), members.end(), member) == members.end()) continue;
    const std::string words = std::string(name_of(node.transition.collective)) + " on " + text(node.transition.axes) +
                              " (" + std::string(name_of(node.phase)) + ")";
    if (std::find(would.begin(), would.end(), words) == would.end()) would.push_back(words);
  }
  return would.empty() ? "" : "  More ranks would cause " + listed(would) + ": on those axes this mesh has one rank.\n";
}

/// Sentences for a member that causes no collective.
inline std::string why_none(const Plan& plan, int member) {
  const GraphView& g = plan.graph;
  const Member& m = g.member(member);
  std::string out = path_of(g, member) + " causes no collective on " + text(plan.mesh) + ".\n";
  if (m.role == Role::state)
    return out + "  It is optimizer state: it lies as its parameter does, " + text(m.type) +
           ", and is updated where it lies.\n";
  bool used = false, pending = false;
  for (const Origin& use : g.origins) {
    if (std::none_of(use.operands.begin(), use.operands.end(), [&](int v) { return member_of(g, v) == member; }))
      continue;
    if (use.result < 0 || member_of(g, use.result) == member) continue;  // a view of it: its own uses follow
    used = true;
    const std::string place = place_of(use.source), rules = decided(plan, use);
    const Type& gives = g.value(use.result).type;
    for (const Placed& p : gives.layout.others)
      pending = pending || (p.placement.pending() && plan.mesh.extent(p.axis) > 1);
    out += "  " + (place.empty() ? "" : place + ": ") + spelled(g, use) + " meets " + met(g, use) +
           (rules.empty() ? "" : "; " + rules) + ". It gives " + text(gives) + ".\n";
  }
  for (const Carry& c : g.carries)
    if (member_of(g, c.initial) == member) {
      used = true;
      out += "  It is what the first layer takes, " + text(g.value(c.inside).type) + ".\n";
    }
  if (!used) return out + "  No operation uses it.\n";
  if (plan.mesh.ranks() == 1)
    out += "  There is one rank, and nobody to send anything to.\n";
  else if (!pending)
    out += "  It leaves no sum pending, so none is completed on its account.\n";
  const bool trained =
      std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) { return n.phase == Phase::backward; });
  if (!trained)
    out += "  The program has no backward pass, so no gradient is reduced.\n";
  else if (!g.value(m.value).differentiable)
    out += "  It is data: no gradient goes back to it.\n";
  else if (plan.mesh.ranks() > 1)
    out += "  Its gradient lies as it does, " + text(m.type) +
           "; no rank holds a mere term of it, so it is not reduced.\n";
  return out + on_one_rank(plan, member);
}
}  // namespace quiet

/// Every collective whose cause includes one of these members, and what causes none; some layers of a member mean the
/// member.
inline std::string why(const Plan& plan, std::vector<int> members) {
  const GraphView& g = plan.graph;
  const auto is_state = [&](int m) { return g.member(m).role == Role::state; };
  if (!std::all_of(members.begin(), members.end(), is_state))
    members.erase(std::remove_if(members.begin(), members.end(), is_state), members.end());
  std::string words;
  std::vector<int> causing;
  std::vector<const Node*> said;  // a chunk after the other does the same
  plan.all.each([&](const Node& node, std::int64_t) {
    if (std::find(said.begin(), said.end(), &node) != said.end()) return;
    said.push_back(&node);
    bool asked = false;
    for (const int m : members_of_cause(g, node, sending_axes(node.transition.axes, plan.mesh)))
      if (std::find(members.begin(), members.end(), m) != members.end()) {
        asked = true;
        causing.push_back(m);
      }
    if (asked) words += (words.empty() ? "" : "\n") + why(plan, node);
  });
  for (const int m : members)
    if (std::find(causing.begin(), causing.end(), m) == causing.end())
      words += (words.empty() ? "" : "\n") + quiet::why_none(plan, m);
  return words;
}
/// The same for the members that a path means; empty where it means none.
inline std::string why(const Plan& plan, std::string_view path) {
  return why(plan, members_named(plan.graph, path).members);
}

}  // namespace planner
