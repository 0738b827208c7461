// The plan of a program on a mesh: what is printed, asserted, simulated and executed. It is read; `plan<>` and `derive<>` make it.
#pragma once
#include <parallel/plan/memory.hpp>

namespace parallel {

/// The collectives of one phase, or of all, as questions see them.
struct Communication {
  GraphView graph{};
  Mesh mesh{};
  std::span<const Event> events{};
  int phase = -1;  ///< -1: all

  /// Calls f(node, times) for every collective: how often its call happens in one step.
  template <class F>
  constexpr void each(F f) const {
    for (const Event& e : events) {
      if (e.kind != EventKind::start) continue;
      const Node& node = graph.node(e.node);
      if (phase < 0 || static_cast<int>(node.phase) == phase) f(node, graph.times(node.region));
    }
  }
  /// Bytes of the full tensor of a collective within the other axes' shard.
  constexpr std::int64_t message(const Node& node) const {
    const std::int64_t before = local_bytes(graph.value(node.operands[0]).type, mesh), after = local_bytes(graph.value(node.result).type, mesh);
    if (node.transition.collective == Collective::all_to_all) return before * mesh.extent(node.transition.axes);
    return before > after ? before : after;
  }
  /// Bytes that a ring sends per rank for one call.
  constexpr double sent(const Node& node) const {
    return parallel::sent(node.transition.collective, static_cast<double>(message(node)), mesh.extent(node.transition.axes));
  }
  /// How many logical collectives one call stands for: a stack of layers counts once per layer.
  constexpr std::int64_t logical(const Node& node) const {
    const int stack = graph.value(node.operands[0]).stack;
    return stack > 0 ? stack : 1;
  }

  constexpr std::int64_t elements_of(const Node& node) const { return message(node) / bytes_of(graph.value(node.operands[0]).type.dtype); }
  /// The sum over all calls on an axis of what `of` says of one.
  template <class F>
  constexpr std::int64_t total(const Axis& axis, F of) const {
    std::int64_t n = 0;
    each([&](const Node& node, std::int64_t times) { n += node.transition.axes.contains(&axis) ? times * of(node) : 0; });
    return n;
  }

  /// Logical reductions, gathers and exchanges on an axis in one step, however calls are merged.
  constexpr std::int64_t collectives(const Axis& axis) const {
    return total(axis, [&](const Node& node) { return logical(node); });
  }
  constexpr std::int64_t collectives(const Axis& axis, Collective kind) const {
    return total(axis, [&](const Node& node) { return node.transition.collective == kind ? logical(node) : 0; });
  }
  /// Calls of the communicator in one step.
  constexpr std::int64_t calls(const Axis& axis) const {
    return total(axis, [](const Node&) { return std::int64_t{1}; });
  }
  constexpr std::int64_t calls() const {
    std::int64_t n = 0;
    each([&](const Node&, std::int64_t times) { n += times; });
    return n;
  }
  /// Bytes, and elements, of all messages on an axis.
  constexpr std::int64_t messages(const Axis& axis) const {
    return total(axis, [&](const Node& node) { return message(node); });
  }
  constexpr std::int64_t elements(const Axis& axis) const {
    return total(axis, [&](const Node& node) { return elements_of(node); });
  }
  constexpr std::int64_t elements(const Axis& axis, Collective kind) const {
    return total(axis, [&](const Node& node) { return node.transition.collective == kind ? elements_of(node) : 0; });
  }
  constexpr std::int64_t largest_message() const {
    std::int64_t n = 0;
    each([&](const Node& node, std::int64_t) { n = message(node) > n ? message(node) : n; });
    return n;
  }
  /// Bytes that a ring sends per rank in one step.
  constexpr double sent(const Axis& axis) const {
    double n = 0;
    each([&](const Node& node, std::int64_t times) { n += node.transition.axes.contains(&axis) ? static_cast<double>(times) * sent(node) : 0; });
    return n;
  }
  constexpr double sent() const {
    double n = 0;
    each([&](const Node& node, std::int64_t times) { n += static_cast<double>(times) * sent(node); });
    return n;
  }
};

struct Plan {
  GraphView graph{};
  Mesh mesh{};
  std::span<const Event> events{};
  std::span<const Storage> storage{};       ///< per value
  std::span<const std::int64_t> packing{};  ///< per node: where in the arena its collective brings slices together
  Memory memory{};
  Communication all{}, forward{}, backward{}, optimizer{};

  constexpr Plan() = default;
  constexpr Plan(const GraphView& g, const Mesh& m, std::span<const Event> e, std::span<const Storage> s, std::span<const std::int64_t> p, const Memory& b)
      : graph(g), mesh(m), events(e), storage(s), packing(p), memory(b), all{g, m, e, -1}, forward{g, m, e, static_cast<int>(Phase::forward)},
        backward{g, m, e, static_cast<int>(Phase::backward)}, optimizer{g, m, e, static_cast<int>(Phase::optimizer)} {}

  constexpr std::int64_t collectives(const Axis& axis) const { return all.collectives(axis); }
  constexpr std::int64_t calls() const { return all.calls(); }
  constexpr double sent(const Axis& axis) const { return all.sent(axis); }
  constexpr std::int64_t peak_memory() const { return memory.peak(); }

  /// Calls f(node, floating point operations in one step) for everything that is computed.
  template <class F>
  constexpr void each_computation(F f) const {
    for (const Event& e : events)
      if (e.kind == EventKind::compute) f(graph.node(e.node), flops(graph.node(e.node)) * static_cast<double>(graph.times(graph.node(e.node).region)));
  }
  /// Floating point operations of one step on one rank.
  constexpr double flops() const {
    double n = 0;
    each_computation([&](const Node&, double work) { n += work; });
    return n;
  }
  /// Of one run of a node on one rank: the whole operation's, divided by the extents of the axes that split it.
  constexpr double flops(const Node& node) const {
    auto divided = static_cast<double>(node.flops);
    for (int i = 0; i < mesh.count; ++i)
      if (shares(node, mesh.axes[i].axis)) divided /= mesh.axes[i].size;
    return divided;
  }
  /// Whether the ranks of an axis share the work of a node instead of each doing all of it.
  constexpr bool shares(const Node& node, const Axis* axis) const {
    for (const int o : node.operands)
      if (graph.value(o).type.layout.on(axis).split()) return true;
    for (int r = 0; r < node.results; ++r)
      if (graph.value(node.result + r).type.layout.on(axis).split()) return true;
    return false;
  }
  /// The part of a rank's floating point operations that every rank of an axis does alike, from 0 to 1.
  constexpr double redundant(const Axis& axis) const {
    double same = 0;
    each_computation([&](const Node& node, double work) { same += shares(node, &axis) ? 0 : work; });
    const double whole = flops();
    return whole > 0 ? same / whole : 0;
  }
};

}  // namespace parallel
