// A plan as a graph for Graphviz: what is computed, what is sent, in clusters of phases and loops; a loop stands there
// once.
#pragma once
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <parallel/question/text.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

namespace dotting {
inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + "\"";
}

struct Clusters {
  const Plan& plan;
  std::map<int, std::vector<const Event*>> events{};  ///< by region and phase: 3 * region + phase
  std::map<int, std::vector<int>> children{};         ///< regions by region
};

inline void write(std::ostream& out, const Clusters& c, int region, int phase, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  const auto found = c.events.find(3 * region + phase);
  if (found != c.events.end())
    for (const Event* e : found->second) {
      const int n = e->node;
      const Node& node = c.plan.graph.node(n);
      const bool sends = calls(node, c.plan.mesh);
      std::string label = sends ? std::string(name_of(node.transition.collective)) + "\n" +
                                      text(sending_axes(node.transition.axes, c.plan.mesh)) + "\n" +
                                      printing::bytes(static_cast<double>(c.plan.all.message(node)))
                                : operations(c.plan.graph, *e);
      if (node.results > 0 && !sends) label += "\n" + text(c.plan.graph.value(node.result).type);
      out << indent << "n" << n << " [label=" << quoted(label)
          << (sends ? ", shape=box, style=filled, fillcolor=\"#ffd9a0\"" : ", shape=box, style=rounded")
          << ", tooltip=" << quoted(member_path(c.plan, node)) << "];\n";
    }
  const auto inner = c.children.find(region);
  if (inner == c.children.end()) return;
  for (const int r : inner->second) {
    const Region& child = c.plan.graph.region(r);
    std::ostringstream within;
    write(within, c, r, phase, depth + 1);
    if (within.str().empty()) continue;
    out << indent << "subgraph cluster_" << phase << "_" << r << " {\n"
        << indent << "  label="
        << quoted((child.kind == RegionKind::layers  ? "layers x"
                   : child.kind == RegionKind::steps ? "steps x"
                                                     : "micro-batches x") +
                  std::to_string(child.count))
        << ";\n"
        << within.str() << indent << "}\n";
  }
}
}  // namespace dotting

inline std::string dot(const Plan& plan) {
  dotting::Clusters clusters{plan};
  std::map<int, int> drawn;  // by node: the first of its fusion
  for (const Event& e : plan.events)
    if (e.kind == EventKind::compute || e.kind == EventKind::start) {
      const Node& node = plan.graph.node(e.node);
      if (drawn.contains(e.node)) continue;  // in another chunk
      clusters.events[3 * node.region + static_cast<int>(node.phase)].push_back(&e);
      each_node(plan.graph, e, [&](int n) { drawn[n] = e.node; });
    }
  for (int r = 1; r < static_cast<int>(plan.graph.regions.size()); ++r)
    clusters.children[plan.graph.region(r).parent].push_back(r);
  std::ostringstream out;
  out << "digraph plan {\n  node [fontname=\"sans-serif\", fontsize=10];\n  label=" << dotting::quoted(text(plan.mesh))
      << ";\n";
  for (int phase = 0; phase < 3; ++phase) {
    std::ostringstream within;
    dotting::write(within, clusters, 0, phase, 2);
    if (within.str().empty()) continue;
    out << "  subgraph cluster_" << phase
        << " {\n    label=" << dotting::quoted(std::string(name_of(static_cast<Phase>(phase)))) << ";\n"
        << within.str() << "  }\n";
  }
  const auto maker = [&](int value) {  // what is drawn of what makes a value, through aliases and what loops hand on
    int n = plan.graph.value(value).node;
    while (!drawn.contains(n) && !plan.graph.node(n).operands.empty())
      n = plan.graph.value(plan.graph.node(n).operands[0]).node;
    return n;
  };
  std::set<std::pair<int, int>> arrows;
  for (const auto& [n, first] : drawn)
    for (const int o : plan.graph.node(n).operands)
      if (const auto from = drawn.find(maker(o)); from != drawn.end() && from->second != first)
        if (arrows.emplace(from->second, first).second) out << "  n" << from->second << " -> n" << first << ";\n";
  out << "}\n";
  return out.str();
}

}  // namespace planner
