// How a plan is written; text.hpp says what.
#pragma once
#include <cstdio>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/balance.hpp>
#include <parallel/plan/stage.hpp>
#include <parallel/plan/unread.hpp>
#include <parallel/question/text.hpp>

namespace parallel::printing {
PARALLEL_INLINE std::string bytes(double n) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer,
                n >= 100 || n == static_cast<double>(static_cast<long>(n)) ? "%.0f %s" : "%.1f %s", n, units[unit]);
  return buffer;
}
}  // namespace parallel::printing

namespace parallel::internals {
PARALLEL_INLINE std::string file_name(const char* path) {
  const std::string whole(path);
  const auto slash = whole.rfind('/');
  return slash == std::string::npos ? whole : whole.substr(slash + 1);
}
PARALLEL_INLINE void pad(std::string& line, std::size_t column) {
  line.append(line.size() < column ? column - line.size() : 1, ' ');
}

PARALLEL_INLINE LayerRange layers_on(const Plan& plan, int stage, int chunk) {
  const Pipeline p = pipeline_of(plan.graph, plan.mesh);
  int all = 0;
  for (const Member& m : plan.graph.members)
    if (const Layout& l = m.type.layout; l.rank() > 0 && l.dims[0].split_by(plan.graph.stages))
      all = static_cast<int>(l.dims[0].size);
  const int each = all / (p.stages * p.chunks);
  if (plan.mesh.cut.axis == nullptr) return {(chunk * p.stages + stage) * each, each};
  const Vector<int> counts = balanced_layers(plan.graph, all, p.stages);
  LayerRange range{0, counts[stage]};
  for (int k = 0; k < stage; ++k) range.first += counts[k];
  return range;
}
PARALLEL_INLINE std::string staged_layers(const Plan& plan, int chunk) {
  const LayerRange range = layers_on(plan, plan.mesh.here, chunk);
  return std::to_string(range.first) + (range.count > 1 ? "-" + std::to_string(range.first + range.count - 1) : "");
}
PARALLEL_INLINE std::string staged_layers(const Plan& plan) {
  std::string result = staged_layers(plan, 0);
  for (int chunk = 1; chunk < pipeline_of(plan.graph, plan.mesh).chunks; ++chunk)
    (result += ",") += staged_layers(plan, chunk);
  return result;
}

PARALLEL_INLINE std::string member_path(const Plan& plan, const Node& node) {
  if (node.member < 0) return "-";
  const Member& member = plan.graph.member(node.member);
  std::string path(plan.graph.path(member));
  const auto star = path.find('*');
  const bool shared = plan.graph.stages != nullptr && !member.type.layout.dims.empty() &&
                      member.type.layout.dims[0].split_by(plan.graph.stages);
  if (star != std::string::npos)
    path.replace(star, 1, shared ? staged_layers(plan) : "0-" + std::to_string(member.layers - 1));
  const Origin origin = plan.graph.origin(node);
  if (origin.is(Structural::bucket)) path += " and " + std::to_string(origin.operands.size() - 1) + " more";
  return path;
}
PARALLEL_INLINE std::string operations(const GraphView& graph, const Event& event) {
  std::string names;
  int before = -1;
  each_node(graph, event, [&](int n) {
    bool reads = false;
    for (const int o : graph.node(n).operands) reads = reads || graph.value(o).node == before;
    (names += before < 0 ? "" : reads ? "+" : "&") += graph.node(n).operation->name;
    before = n;
  });
  return names;
}
/// What the CPU takes beside the tensors, and all together.
PARALLEL_INLINE std::string taken_beside(const Plan& plan) {
  const auto line = [](std::string words, const std::string& what) {
    pad(words, 23);
    return words + what + "\n";
  };
  const account::Taken b = plan.beside();
  std::string out;
  if (b.rounding > 0)
    out += line("  rounding", printing::bytes(static_cast<double>(b.rounding)) + ", of large blocks to huge pages");
  if (b.scratch > 0)
    out += line("  scratch", "at most " + printing::bytes(static_cast<double>(b.scratch)) + ", in which kernels work");
  if (b.rounding + b.scratch > 0)
    out += line("on the CPU", "at most " + printing::bytes(static_cast<double>(plan.process_memory())) + " in all");
  if (const std::int64_t terms = plan.terms_of_sums(); terms >= 4096)
    out += line("over MPI", printing::bytes(static_cast<double>(terms)) + " more, for terms of sums");
  return out;
}

/// Of a device, or a host.
PARALLEL_INLINE std::string memory(std::string what, std::int64_t bytes, std::int64_t arena,
                                   const std::int64_t (&by_use)[uses]) {
  what += printing::bytes(static_cast<double>(bytes)) + ", of it an arena of " +
          printing::bytes(static_cast<double>(arena)) +
          (arena > 0 ? ", whose values share room over the step\n" : "\n");
  for (int u = 0; u < uses; ++u) {
    if (by_use[u] == 0) continue;
    std::string line = "  " + std::string(name_of(static_cast<Use>(u)));
    pad(line, 23);
    what += line + printing::bytes(static_cast<double>(by_use[u])) + "\n";
  }
  return what;
}

PARALLEL_INLINE std::string read_by_nothing(const Plan& plan) {
  std::string out;
  for (const int i : unread_parameters(plan)) {
    std::string line = "  read by nothing";
    pad(line, 23);
    const std::int64_t bytes = local_bytes(plan.graph.member(i).type, plan.mesh);
    out += line + printing::bytes(static_cast<double>(bytes)) + ", " + std::string(plan.graph.path(i)) + "\n";
  }
  return out;
}

PARALLEL_INLINE std::string totals(const Plan& plan) {
  printing::Table communication{{23, 13, 13, 7, 11},
                                {{{"per step and rank", "axis", "collectives", "calls", "message", "sent"}}}};
  const Communication* phases[] = {&plan.forward, &plan.backward, &plan.optimizer};
  for (int p = 0; p < 3; ++p)
    for (const Axis* a : phases[p]->told())
      communication.rows.push_back(
          {{std::string(name_of(static_cast<Phase>(p))), std::string(a->text()),
            std::to_string(phases[p]->collectives(*a)), std::to_string(phases[p]->calls(*a)),
            printing::bytes(static_cast<double>(phases[p]->messages(*a))), printing::bytes(phases[p]->sent(*a))}});
  if (communication.rows.size() == 1 && plan.mesh.ranks() == 1)
    communication.rows = {{{"per step and rank", "no collective"}}};
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Axis& axis = *plan.mesh.axes[i].axis;
    if (!plan.all.one_sided_on(axis)) continue;
    communication.rows.push_back({{"per step and link", "axis", "rank", "", "received", "sent"}});
    for (int first = 0; first < plan.mesh.axes[i].size;) {
      const Traffic link = plan.all.link(axis, first);
      int last = first;
      while (last + 1 < plan.mesh.axes[i].size && plan.all.link(axis, last + 1) == link) ++last;
      const std::string ranks = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
      communication.rows.push_back(
          {{"", std::string(axis.text()), ranks, "", printing::bytes(link.received), printing::bytes(link.sent)}});
      first = last + 1;
    }
  }
  const auto beside = [&](const char* what, const Comparison& exchange) {
    if (exchange.calls() == 0) return;
    const std::string calls = std::to_string(exchange.calls());
    communication.rows.push_back(
        {{what, text(exchange.axes()), calls, calls, printing::bytes(static_cast<double>(exchange.messages())),
          printing::bytes(exchange.sent())}});
  };
  beside("counter of steps", plan.agreement.counter);
  beside("inputs at steps 2^k", plan.agreement.inputs);
  if (plan.mesh.ranks() > 1) communication.rows.push_back({{"per run and rank"}});
  beside("agreement at start", plan.agreement.start);
  beside("agreement at end", plan.agreement.end);
  const Memory& m = plan.memory;
  std::string out =
      "\n" + communication.text() + "\n" + memory("memory per rank        peak ", m.peak(), m.arena, m.by_use);
  if (m.host() > 0) out += memory("memory of its host     ", m.host(), m.host_arena, m.host_by_use);
  out += read_by_nothing(plan) + taken_beside(plan);
  char flops[64];
  std::snprintf(flops, sizeof flops, "\ncomputation per rank   %.3g FLOP a step\n", plan.flops());
  out += flops;
  if (const double again = plan.flops_again(); again > 0) {
    std::snprintf(flops, sizeof flops, "  %.3g of them again in the backward pass", again);
    out += flops + std::string("\n");
  }
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Extent& e = plan.mesh.axes[i];
    if (e.size == 1) continue;
    const double same = plan.redundant(*e.axis);
    char share[32];
    std::snprintf(share, sizeof share, "  %.1f %% of it", 100 * same);
    if (same < 0.0005) continue;
    out += share + (" computed " + std::to_string(e.size) + " times on ") + std::string(e.axis->text()) + "\n";
  }
  return out;
}

PARALLEL_INLINE std::string head_of(const Plan& plan) {
  std::string result = text(plan.mesh) + ": " + std::to_string(plan.mesh.ranks()) + " ranks";
  const Pipeline p = pipeline_of(plan.graph, plan.mesh);
  if (p.stages == 1) return result;
  result += "; " + std::string(plan.graph.stages->text()) + " " + std::to_string(plan.mesh.here) + " of " +
            std::to_string(p.stages) + " with layers " + staged_layers(plan);
  if (!p.trained) return result;
  return result + ", " + text(*plan.graph.schedule) +
         (plan.graph.schedule->weights_apart ? " with weights apart, " : ", ") + std::to_string(p.micro_batches) +
         (p.micro_batches == 1 ? " micro-batch" : " micro-batches") + ", at most " +
         std::to_string(plan.graph.lanes()) + " in flight" +
         (p.micro_batches == 1 && !plan.graph.schedule->asynchronous
              ? ": while one stage works the others wait, but for Accumulate<m, ...>"
              : "");
}

PARALLEL_INLINE std::string text(const Plan& plan) {
  printing::Table table{{11, 7, 16, 13, 41, 11, 11},
                        {{{"phase", "calls", "collective", "axis", "tensor", "message", "sent", "member, line"}}}};
  plan.all.each([&](const Node& node, std::int64_t times) {
    const Transition& t = node.transition;
    const Source source = plan.graph.origin(node).source;
    table.rows.push_back(
        {{std::string(name_of(node.phase)), std::to_string(times),
          std::string(name_of(t.collective)) + (t.maximum ? " max" : ""), text(sending_axes(t.axes, plan.mesh)),
          text(plan.graph.value(node.operands[0]).type), printing::bytes(static_cast<double>(plan.all.message(node))),
          printing::bytes(plan.all.sent(node)),
          member_path(plan, node) +
              (source.line > 0 ? ", " + file_name(source.file) + ":" + std::to_string(source.line) : "")}});
  });
  return "plan for " + head_of(plan) + "\n\n" + table.text() + totals(plan);
}

}  // namespace parallel::internals
