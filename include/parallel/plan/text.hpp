// A plan as text: every collective, totals per phase and axis, memory by kind.
#pragma once
#include <cstdio>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/plan.hpp>

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
  return path;
}
}  // namespace printing

/// Totals per phase and axis, memory by kind, computation per rank.
inline std::string totals(const Plan& plan) {
  using printing::pad;
  std::string out;
  out += "\nper step and rank      axis         collectives  calls  message    sent\n";
  const Communication* phases[] = {&plan.forward, &plan.backward, &plan.optimizer};
  for (int p = 0; p < 3; ++p)
    for (int i = 0; i < plan.mesh.count; ++i) {
      const Axis& axis = *plan.mesh.axes[i].axis;
      if (phases[p]->calls(axis) == 0) continue;
      std::string line(name_of(static_cast<Phase>(p)));
      pad(line, 23);
      line += axis.text();
      pad(line, 36);
      line += std::to_string(phases[p]->collectives(axis));
      pad(line, 49);
      line += std::to_string(phases[p]->calls(axis));
      pad(line, 56);
      line += printing::bytes(static_cast<double>(phases[p]->messages(axis)));
      pad(line, 67);
      line += printing::bytes(phases[p]->sent(axis));
      out += line + "\n";
    }
  out += "\nmemory per rank        peak " + printing::bytes(static_cast<double>(plan.peak_memory())) + ", of it an arena of " +
         printing::bytes(static_cast<double>(plan.memory.arena)) + "\n";
  for (int u = 0; u < uses; ++u) {
    if (plan.memory.by_use[u] == 0) continue;
    std::string line = "  " + std::string(name_of(static_cast<Use>(u)));
    pad(line, 23);
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
  using printing::pad;
  std::string out = "plan for " + text(plan.mesh) + ": " + std::to_string(plan.mesh.ranks()) + " ranks\n\n";
  out += "phase      calls  collective      axis         tensor                                   message    sent       member, line\n";
  plan.all.each([&](const Node& node, std::int64_t times) {
    const Transition& t = node.transition;
    std::string line(name_of(node.phase));
    pad(line, 11);
    line += std::to_string(times);
    pad(line, 18);
    line += std::string(name_of(t.collective)) + (t.maximum ? " max" : "");
    pad(line, 34);
    line += text(t.axes);
    pad(line, 47);
    const Type& type = plan.graph.value(node.operands[0]).type;
    line += text(type);
    pad(line, 88);
    line += printing::bytes(static_cast<double>(plan.all.message(node)));
    pad(line, 99);
    line += printing::bytes(plan.all.sent(node));
    pad(line, 110);
    line += printing::member_path(plan, node);
    const Source source = plan.graph.origin(node).source;
    if (source.line > 0) line += ", " + printing::file_name(source.file) + ":" + std::to_string(source.line);
    out += line + "\n";
  });
  return out + totals(plan);
}

}  // namespace parallel
