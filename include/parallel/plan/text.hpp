// A plan as text: every collective, totals per phase and axis, memory by kind.
#pragma once
#include <cstdio>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/plan/table.hpp>

namespace parallel {

namespace printing {
/// 1536 -> "1.5 KiB"
inline std::string bytes(double n) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (n >= 1024 && unit < 4) n /= 1024, ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, n == static_cast<double>(static_cast<long>(n)) || n >= 100 ? "%.0f %s" : "%.1f %s", n, units[unit]);
  return buffer;
}
inline std::string file_name(const char* path) {
  const std::string whole(path);
  const auto slash = whole.rfind('/');
  return slash == std::string::npos ? whole : whole.substr(slash + 1);
}
inline void pad(std::string& line, std::size_t column) { line.append(line.size() < column ? column - line.size() : 1, ' '); }

/// "blocks.*.mlp.down" of twelve layers -> "blocks.0-11.mlp.down"
inline std::string member_path(const Plan& plan, const Node& node) {
  if (node.member < 0) return "-";
  const Member& member = plan.graph.member(node.member);
  std::string path(member.path.view());
  const auto star = path.find('*');
  if (star != std::string::npos) path.replace(star, 1, "0-" + std::to_string(member.layers - 1));
  const Origin origin = plan.graph.origin(node);
  if (origin.operation == &operation::bucket) path += " and " + std::to_string(origin.operands.size() - 1) + " more";
  return path;
}
}  // namespace printing

/// Totals per phase and axis, memory by kind, computation per rank. An axis of one rank has none.
inline std::string totals(const Plan& plan) {
  printing::Table communication{{23, 13, 13, 7, 11}, {{{"per step and rank", "axis", "collectives", "calls", "message", "sent"}}}};
  const Communication* phases[] = {&plan.forward, &plan.backward, &plan.optimizer};
  for (int p = 0; p < 3; ++p)
    for (int i = 0; i < plan.mesh.count; ++i) {
      const Axis& axis = *plan.mesh.axes[i].axis;
      if (plan.mesh.axes[i].size == 1 || phases[p]->calls(axis) == 0) continue;
      communication.rows.push_back({{std::string(name_of(static_cast<Phase>(p))), std::string(axis.text()), std::to_string(phases[p]->collectives(axis)),
                                     std::to_string(phases[p]->calls(axis)), printing::bytes(static_cast<double>(phases[p]->messages(axis))),
                                     printing::bytes(phases[p]->sent(axis))}});
    }
  if (communication.rows.size() == 1) communication.rows = {{{"per step and rank", "no collective"}}};
  std::string out = "\n" + communication.text() + "\nmemory per rank        peak " + printing::bytes(static_cast<double>(plan.peak_memory())) +
                    ", of it an arena of " + printing::bytes(static_cast<double>(plan.memory.arena)) +
                    (plan.memory.arena > 0 ? ", whose values share room over the step\n" : "\n");
  for (int u = 0; u < uses; ++u) {
    if (plan.memory.by_use[u] == 0) continue;
    std::string line = "  " + std::string(name_of(static_cast<Use>(u)));
    printing::pad(line, 23);
    out += line + printing::bytes(static_cast<double>(plan.memory.by_use[u])) + "\n";
  }
  char flops[64];
  std::snprintf(flops, sizeof flops, "\ncomputation per rank   %.3g FLOP a step\n", plan.flops());
  out += flops;
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Extent& e = plan.mesh.axes[i];
    if (e.size == 1) continue;
    const double same = plan.redundant(*e.axis);
    char line[160];
    std::snprintf(line, sizeof line, "  %.1f %% of it computed %d times on %s\n", 100 * same, e.size, std::string(e.axis->text()).c_str());
    if (same >= 0.0005) out += line;
  }
  return out;
}

/// The text of a plan, one line per collective: phase, calls, kind, axis, tensor, message and sent bytes per call, member, source line.
inline std::string text(const Plan& plan) {
  printing::Table table{{11, 7, 16, 13, 41, 11, 11}, {{{"phase", "calls", "collective", "axis", "tensor", "message", "sent", "member, line"}}}};
  plan.all.each([&](const Node& node, std::int64_t times) {
    const Transition& t = node.transition;
    const Source source = plan.graph.origin(node).source;
    table.rows.push_back({{std::string(name_of(node.phase)), std::to_string(times), std::string(name_of(t.collective)) + (t.maximum ? " max" : ""),
                           text(sending_axes(t.axes, plan.mesh)), text(plan.graph.value(node.operands[0]).type),
                           printing::bytes(static_cast<double>(plan.all.message(node))), printing::bytes(plan.all.sent(node)),
                           printing::member_path(plan, node) + (source.line > 0 ? ", " + printing::file_name(source.file) + ":" + std::to_string(source.line) : "")}});
  });
  return "plan for " + text(plan.mesh) + ": " + std::to_string(plan.mesh.ranks()) + " ranks\n\n" + table.text() + totals(plan);
}

}  // namespace parallel
