// Why a rank needs as much memory as it does: the moment of the step at which it holds most, and what lives then.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <parallel/question/moment.hpp>

#include "over_time.hpp"
#include "why.hpp"

namespace planner {

namespace fullness {
/// "matmul of blocks.*.up at gpt.cpp:24, backward"
inline std::string happening(const Plan& plan, const Node& node) {
  const std::string what =
      node.is(Structural::move) ? std::string(name_of(node.transition.collective)) : std::string(node.operation->name);
  const std::string member = member_path(plan, node), place = place_of(plan.graph.origin(node).source);
  return what + (member.empty() || member == "-" ? "" : " of " + member) + (place.empty() ? "" : " at " + place) +
         ", " + std::string(name_of(node.phase));
}
inline std::string event(const Plan& plan, int at) {
  if (at >= static_cast<int>(plan.events.size())) return "the end of the step";
  return happening(plan, plan.graph.node(plan.events[static_cast<std::size_t>(at)].node));
}
inline std::string bytes(std::int64_t n) { return printing::bytes(static_cast<double>(n)); }
}  // namespace fullness

/// The moment, bytes by use, and the largest values of the arena that live then, each with who made it and until when
/// it is needed.
inline std::string why_memory(const Plan& plan) {
  using namespace fullness;
  const Moment most = fullest(plan);
  std::string out = "a rank holds most, " + bytes(most.bytes()) + ", at " + event(plan, most.event) + "\n";
  if (const std::int64_t gaps = plan.peak_memory() - most.bytes(); gaps > 0)
    out += "  with gaps between what lives, " + bytes(plan.peak_memory()) + "\n";
  out += "\n" + members_then(plan, most);
  std::vector<Allocation> living;
  for (const Allocation& a : allocations(plan))
    if (a.first <= most.event && most.event <= a.last) living.push_back(a);
  std::stable_sort(living.begin(), living.end(),
                   [](const Allocation& a, const Allocation& b) { return a.bytes > b.bytes; });
  constexpr std::size_t shown = 12;
  printing::Table table;
  table.rows.push_back({{"lives then", "for", "what", "made by", "needed until"}});
  for (std::size_t i = 0; i < std::min(shown, living.size()); ++i) {
    const Allocation& a = living[i];
    const bool buffer = a.owner < 0;
    const Node& node = plan.graph.node(buffer ? -1 - a.owner : int{plan.graph.value(a.owner).node});
    table.rows.push_back({{bytes(a.bytes), std::string(internals::name_of(a.use)),
                           buffer ? "a collective's buffer" : text(plan.graph.value(a.owner).type),
                           happening(plan, node), event(plan, a.last)}});
  }
  out += "\n" + table.text();
  if (living.size() > shown) out += "and " + std::to_string(living.size() - shown) + " smaller\n";
  return out;
}

}  // namespace planner
