// The plan of a program on a mesh: what is printed, asserted, simulated and executed. It is read; `plan<>` and
// `derive<>` make it.
#pragma once
#include <concepts>

#include <parallel/account/cpu.hpp>
#include <parallel/plan/agreement.hpp>
#include <parallel/plan/collective_row.hpp>
#include <parallel/plan/memory.hpp>

namespace parallel::internals {

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
      if (e.kind != EventKind::start || starts_next(e)) continue;
      const Node& node = graph.node(e.node);
      if (phase < 0 || static_cast<int>(node.phase) == phase) f(node, graph.times(node));
    }
  }
  /// Bytes of the full tensor of a collective within the other axes' shard; of a flat view with its padding.
  constexpr std::int64_t message(const Node& node) const {
    const std::int64_t before = local_bytes(graph.value(node.operands[0]).type, mesh),
                       after = local_bytes(graph.value(node.result).type, mesh);
    if (exchanges_slices(node.transition)) {
      const SliceExchange exchange(graph, node, mesh);
      return exchange.n * exchange.elements() * exchange.bytes;
    }
    if (node.transition.from.flat || node.transition.to.flat)
      return (before < after ? before : after) * mesh.extent(node.transition.axes);
    if (node.transition.collective == Collective::all_to_all || node.transition.collective == Collective::rotate)
      return before * mesh.extent(node.transition.axes);
    return before > after ? before : after;
  }
  constexpr std::int64_t counted(const Node& node) const { return counts(node) ? message(node) : 0; }
  /// Bytes that a ring sends per rank for one call.
  constexpr double sent(const Node& node) const {
    return parallel::internals::sent(node.transition.collective, static_cast<double>(message(node)),
                                     participants(node.transition, mesh));
  }
  /// Whether it is no mere other end: a message between stages is counted by who sends it.
  static constexpr bool counts(const Node& node) { return node.transition.collective != Collective::receive; }
  /// How many logical collectives one call stands for: a stack of layers counts once per layer, a bucket for all that
  /// is in it.
  constexpr std::int64_t logical(const Node& node) const { return counts(node) ? logical(node.operands[0]) : 0; }
  constexpr std::int64_t logical(int value) const {
    if (!graph.maker(value).is(Structural::bucket))
      return graph.value(value).stack > 0 ? local_layers(graph.value(value)) : 1;
    std::int64_t all = 0;
    for (const int part : graph.maker(value).operands) all += logical(part);
    return all;
  }

  /// Of a stack, the layers that a rank has: all, or those of its stage.
  constexpr std::int64_t local_layers(const Value& stack) const {
    const Dim& layers = stack.type.layout.dims[0];
    return graph.stages != nullptr && layers.split_by(graph.stages) ? local(layers, mesh) : stack.stack;
  }

  constexpr std::int64_t elements_of(const Node& node) const {
    return counted(node) / bytes_of(graph.value(node.operands[0]).type.dtype);
  }
  /// Copies between a rank's memories are meant only where that is said, by `host` or their kind.
  constexpr bool meant(const CollectiveRow& which, const Node& node, const AxisList& axes) const {
    const bool said = which.collective != Collective::retype || !which.axes.empty();
    return (said || !copies(node.transition.collective)) && which.means(node.transition.collective, axes) &&
           (which.bytes == CollectiveRow::unsaid || which.bytes == message(node));
  }
  constexpr bool meant(const CollectiveRow& which, const Node& node) const {
    return meant(which, node, sending_axes(node.transition.axes, mesh));
  }
  /// An axis that is asked about and none of this plan's: neither the mesh has it nor the program names it; null: all
  /// are.
  constexpr const Axis* foreign(const CollectiveRow& row) const {
    for (const Axis* a : row.axes)
      if (!mesh.has(a) && a->text() != axes::host.text() && !graph.nodes.empty() && !names(graph, a)) return a;
    return nullptr;
  }
  /// The sum over all calls that are meant of what `of` says of one.
  template <class Number, class F>
  constexpr Number total(const CollectiveRow& which, F of) const {
    Number n = 0;
    each([&](const Node& node, std::int64_t times) {
      n += meant(which, node) ? static_cast<Number>(times) * of(node) : 0;
    });
    return n;
  }
  /// The first collective of which `contradicts` says so. It stands before its callers because clang 14 needs it so in
  /// a constant expression.
  template <class F>
  constexpr Finding first_that(Finding::Of of, F contradicts) const {
    Finding finding;
    each([&](const Node& node, std::int64_t times) {
      if (!finding || !contradicts(node, times)) return;
      finding = {.of = of, .phase = node.phase, .line = graph.origin(node).source.line};
      finding.found = {node.transition.collective, node.transition.axes, times, message(node)};
      if (node.member >= 0) finding.member = abbreviated<sizeof finding.member.characters>(graph.path(node.member));
    });
    return finding;
  }

  template <class F, class... X>
  constexpr auto answer(F f, const X&... which) const {
    if constexpr (requires { asked(which...); }) {
      const CollectiveRow row = asked(which...);
      if (const Axis* axis = foreign(row)) neither_the_mesh_has_nor_the_program_names(*axis);
      return f(row);
    } else {
      return unasked<X...>();
    }
  }

  template <class F, class... Rows>
  constexpr Finding judged(F f, const Rows&... rows) const {
    Finding finding;
    ((finding && foreign(rows) != nullptr ? finding.found = rows, finding.of = Finding::Of::foreign : finding.of), ...);
    return finding ? f(rows...) : finding;
  }
  template <class F, class... X>
  constexpr Finding judge(F f, const X&... rows) const {
    if constexpr ((std::convertible_to<X, CollectiveRow> && ...))
      return judged(f, CollectiveRow(rows)...);
    else
      return static_cast<void>(unasked<X...>()), Finding{};
  }

  // A collective is what is asked about, not how.
#define PARALLEL_COLLECTIVE(name)             \
  template <class... X>                       \
  constexpr Unknown name(const X&...) const { \
    return unasked<X...>();                   \
  }
  PARALLEL_COLLECTIVE(all_reduce)
  PARALLEL_COLLECTIVE(all_gather)
  PARALLEL_COLLECTIVE(reduce_scatter)
  PARALLEL_COLLECTIVE(all_to_all)
#undef PARALLEL_COLLECTIVE

  // Each takes what `asked` does: calls(), calls(tensor), calls(all_gather), calls(all_gather(tensor)). A call on
  // several axes counts for each.

  /// Logical reductions, gathers, exchanges and sends in one step, however calls are merged.
  constexpr auto collectives(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) {
          return total<std::int64_t>(row, [&](const Node& node) { return logical(node); });
        },
        which...);
  }
  /// Calls of the communicator in one step, receives among them.
  constexpr auto calls(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) { return total<std::int64_t>(row, [](const Node&) { return std::int64_t{1}; }); },
        which...);
  }
  /// Bytes, and elements, of all messages.
  constexpr auto messages(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) {
          return total<std::int64_t>(row, [&](const Node& node) { return counted(node); });
        },
        which...);
  }
  constexpr auto elements(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) {
          return total<std::int64_t>(row, [&](const Node& node) { return elements_of(node); });
        },
        which...);
  }
  constexpr auto largest_message(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) {
          std::int64_t n = 0;
          each([&](const Node& node, std::int64_t) { n = meant(row, node) && message(node) > n ? message(node) : n; });
          return n;
        },
        which...);
  }
  /// Bytes that a ring sends per rank in one step.
  constexpr auto sent(const auto&... which) const {
    return answer(
        [&](const CollectiveRow& row) { return total<double>(row, [&](const Node& node) { return sent(node); }); },
        which...);
  }

  /// Bytes that go through the link of one rank of an axis in one step, out and in: of a server's all that the others
  /// pull and push.
  constexpr Traffic link(const Axis& axis, int coordinate) const {
    Traffic all;
    each([&](const Node& node, std::int64_t times) {
      const Transition& t = node.transition;
      if (!t.axes.contains(&axis) || copies(t.collective)) return;
      const Traffic one = traffic_of(t, static_cast<double>(message(node)), coordinate, participants(t, mesh));
      all.sent += static_cast<double>(times) * one.sent;
      all.received += static_cast<double>(times) * one.received;
    });
    return all;
  }
  /// Whether the links of an axis are not all alike, as collectives lead to one rank or away from one.
  constexpr bool one_sided_on(const Axis& axis) const {
    bool any = false;
    each([&](const Node& node, std::int64_t) {
      any = any || (node.transition.axes.contains(&axis) && one_sided(node.transition) && mesh.extent(&axis) > 1);
    });
    return any && &axis != graph.stages;
  }

  /// The axes on which there is something to tell: those of several ranks, and the host's.
  constexpr AxisList told() const {
    AxisList axes;
    for (int i = 0; i < mesh.count; ++i)
      if (mesh.axes[i].size > 1 && calls(*mesh.axes[i].axis) > 0) axes.push_back(mesh.axes[i].axis);
    if (const Axis* host = host_axis(graph); host != nullptr && calls(*host) > 0) axes.push_back(host);
    return axes;
  }

  /// Whether no collective is among these.
  constexpr Finding never(const auto&... rows) const {
    return judge(
        [&](const auto&... row) {
          return first_that(Finding::Of::never,
                            [&](const Node& node, std::int64_t) { return (meant(row, node) || ...); });
        },
        rows...);
  }
  /// Whether every collective is among these, on each of its axes.
  constexpr Finding uses_only(const auto&... rows) const {
    return judge(
        [&](const auto&... row) {
          return first_that(Finding::Of::uses_only, [&](const Node& node, std::int64_t) {
            if (copies(node.transition.collective)) return false;
            for (const Axis* a : node.transition.axes)
              if (!(meant(row, node, {a}) || ...)) return true;
            return false;
          });
        },
        rows...);
  }
  /// Whether these are the collectives, row by row as `text` prints them: 4 * all_gather(tensor) is one that four
  /// layers call.
  constexpr Finding is(const auto&... rows) const {
    return judge([&](const auto&... row) { return is(List<CollectiveRow, 64>{row...}); }, rows...);
  }
  constexpr Finding is(const List<CollectiveRow, 64>& rows) const {
    for (const CollectiveRow& row : rows)
      if (foreign(row) != nullptr) return {.of = Finding::Of::foreign, .found = row};
    int at = 0;
    Finding finding = first_that(Finding::Of::is, [&](const Node& node, std::int64_t times) {
      if (at == rows.size()) return true;
      const CollectiveRow& row = rows[at];
      const bool same = meant(row, node) && row.axes.size() == node.transition.axes.size() && row.calls == times;
      at += same ? 1 : 0;
      return !same;
    });
    if (finding && at == rows.size()) return finding;
    // nothing is there
    if (finding) finding = {.of = Finding::Of::is, .phase = static_cast<Phase>(phase < 0 ? 0 : phase)};
    finding.row = at + 1;
    if (at < rows.size()) finding.expected = rows[at];
    return finding;
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
  Agreement agreement{};      ///< what is said beside them
  std::uint64_t derived = 0;  ///< the number of one that was derived at start-up, whose memory is no constant (keep)

  constexpr Plan() = default;
  constexpr Plan(const GraphView& g, const Mesh& m, std::span<const Event> e, std::span<const Storage> s,
                 std::span<const std::int64_t> p, const Memory& b)
      : graph(g),
        mesh(m),
        events(e),
        storage(s),
        packing(p),
        memory(b),
        all{g, m, e, -1},
        forward{g, m, e, static_cast<int>(Phase::forward)},
        backward{g, m, e, static_cast<int>(Phase::backward)},
        optimizer{g, m, e, static_cast<int>(Phase::optimizer)},
        agreement(g, m) {}

  constexpr auto collectives(const auto&... which) const { return all.collectives(which...); }
  constexpr auto calls(const auto&... which) const { return all.calls(which...); }
  constexpr auto sent(const auto&... which) const { return all.sent(which...); }
  constexpr Traffic link(const Axis& axis, int coordinate) const { return all.link(axis, coordinate); }
  constexpr auto largest_message(const auto&... which) const { return all.largest_message(which...); }
  /// Bytes of tensors that a rank holds at most, on any device.
  constexpr std::int64_t peak_memory() const { return memory.peak(); }
  /// And in the memory of its host, where something is `Stored<host>`.
  constexpr std::int64_t host_memory() const { return memory.host(); }
  /// Bytes that a save of a checkpoint takes beside them on the host, until it is written (run/checkpoint.hpp): of the
  /// rank of this stage that writes most, the first, a copy of all that outlives the step.
  constexpr std::int64_t saved_memory() const {
    std::int64_t bytes = 0;
    for (const Member& m : graph.members) {
      if (m.role == Role::input || storage[static_cast<std::size_t>(m.value)].block == MemoryBlock::none) continue;
      const Placement on = graph.stages == nullptr ? Placement{} : m.type.layout.on(graph.stages);
      bool before = false;  // of what stages have alike the first writes
      for (int stage = 0; stage < mesh.here && !on.split(); ++stage)
        before = before || on.kind != PlacementKind::at || holds(on, stage, mesh.extent(graph.stages));
      if (!before) bytes += local_bytes(m.type, mesh);
    }
    return bytes;
  }
  /// What a device takes beside them.
  constexpr account::Taken beside(const DeviceAccount& device = account::on_cpu) const {
    account::Taken b;
    for (int i = 0; i < memory_blocks; ++i)
      if (const auto block = static_cast<MemoryBlock>(i); device.is_host || !of_host(block))
        b.rounding += device.block(memory.of(block)) - memory.of(block);
    b.scratch = scratch(device).bytes();
    return b;
  }
  constexpr account::Scratch scratch(const DeviceAccount& device = account::on_cpu) const {
    account::Scratch most;
    for (const Event& e : events)
      if (e.kind == EventKind::compute)
        each_node(graph, e, [&](int n) { most.grow(device.scratch(extents_of(graph.node(n)))); });
    return most;
  }
  /// By how much a rank lets its process grow at most, within 2 % and 2 MiB: the whole account.
  constexpr std::int64_t process_memory(const DeviceAccount& device = account::on_cpu) const {
    const account::Taken b = beside(device);
    return peak_memory() + (device.is_host ? host_memory() : 0) + b.rounding + b.scratch;
  }
  /// What Mpi takes besides, for terms of sums that are under way: of a reduce-scatter and a reduce all that the ranks
  /// send to one, and of an all-reduce as much where the ranks do not divide it, or it is made in place. Rooms are as
  /// in communicator/rooms.hpp.
  constexpr std::int64_t terms_of_sums() const {
    struct Room {
      std::int64_t bytes = 0;
      int lent_to = -1;
    };
    Vector<Room> rooms;
    for (int step = 0; step < 2; ++step)  // what one step leaves under way, and how its rooms lie, is there in the next
      for (const Event& e : events) {
        if (e.kind == EventKind::wait)
          for (Room& r : rooms) r.lent_to = r.lent_to == e.node ? -1 : r.lent_to;
        const std::int64_t bytes = e.kind == EventKind::start ? terms_of_sum(graph.node(e.node)) : 0;
        if (bytes == 0) continue;
        Room* best = nullptr;
        for (Room& r : rooms)
          if (r.lent_to < 0 && r.bytes >= bytes && (best == nullptr || r.bytes < best->bytes)) best = &r;
        if (best == nullptr) {
          rooms.push_back({bytes, -1});
          best = &rooms.back();
        }
        best->lent_to = e.node;
      }
    std::int64_t bytes = 0;
    for (const Room& r : rooms) bytes += r.bytes;
    return bytes;
  }
  constexpr std::int64_t terms_of_sum(const Node& node) const {
    const std::int64_t ranks = participants(node.transition, mesh),
                       width = bytes_of(graph.value(node.operands[0]).type.dtype), count = all.message(node) / width;
    switch (node.transition.collective) {
      case Collective::reduce_scatter: return count * width;
      case Collective::reduce: return ranks * count * width;
      case Collective::all_reduce:
        return count % ranks == 0 && node.in_last < 0 ? 0 : ranks * ((count + ranks - 1) / ranks) * width;
      default: return 0;
    }
  }
  /// A node as one rank computes it.
  constexpr account::Extents extents_of(const Node& node) const {
    account::Extents extents{.operation = node.operation->name, .ints = node.ints};
    const auto part = [&](int value) {
      const Type& type = graph.value(value).type;
      account::Part p{.dtype = type.dtype};
      for (const std::int64_t size : local_part(type.layout, mesh).size) p.size.push_back(size);
      return p;
    };
    for (const int o : node.operands) extents.operands.push_back(part(o));
    for (int r = 0; r < node.results; ++r) extents.results.push_back(part(node.result + r));
    return extents;
  }

  constexpr Finding never(const auto&... rows) const { return all.never(rows...); }
  constexpr Finding uses_only(const auto&... rows) const { return all.uses_only(rows...); }
  /// Whether the plan is as somebody wrote it down: every collective, in its phase and order.
  constexpr Finding is(const WrittenPlan& written) const {
    for (const Finding& finding :
         {forward.is(written.forward), backward.is(written.backward), optimizer.is(written.optimizer)})
      if (!finding) return finding;
    return {};
  }
  template <class... X>
  requires(!(std::convertible_to<X, WrittenPlan> && ...)) constexpr Finding
      is(const X&...) const {  // rows without their phase
    return static_cast<void>(unasked<X...>()), Finding{};
  }

  /// Calls f(node, floating point operations in one step) for everything that is computed.
  template <class F>
  constexpr void each_computation(F f) const {
    for (const Event& e : events)
      if (e.kind == EventKind::compute)
        each_node(graph, e, [&](int n) {
          f(graph.node(n), flops(graph.node(n)) * static_cast<double>(graph.times(graph.node(n))));
        });
  }
  /// Floating point operations of one step on one rank.
  constexpr double flops() const {
    double n = 0;
    each_computation([&](const Node&, double work) { n += work; });
    return n;
  }
  /// Those of them that the backward pass does again, instead of keeping what they gave.
  constexpr double flops_again() const {
    double n = 0;
    each_computation([&](const Node& node, double work) {
      if (node.results > 0 && graph.value(node.result).again >= 0) n += work;
    });
    return n;
  }
  /// Of one run of a node on one rank: the whole operation's, divided by the extents of the axes that split it.
  constexpr double flops(const Node& node) const {
    auto n = static_cast<double>(node.flops);
    for (int i = 0; i < mesh.count; ++i)
      if (const Axis* axis = mesh.axes[i].axis; shares(node, axis) && !at_some(node, axis))
        n *= axis == graph.stages ? share_of_layers(node) : 1.0 / mesh.axes[i].size;
    return n;
  }
  /// Of a node on stacks of layers, the part of them that this stage has; any other is whole on its stage.
  constexpr double share_of_layers(const Node& node) const {
    for (const int o : node.operands)
      if (const Layout& l = graph.value(o).type.layout; l.rank() > 0 && l.dims[0].split_by(graph.stages))
        return static_cast<double>(local(l.dims[0], mesh)) / static_cast<double>(l.dims[0].size);
    return 1;
  }
  /// Whether the ranks of an axis share the work of a node instead of each doing all of it.
  constexpr bool shares(const Node& node, const Axis* axis) const {
    if (stands_apart(node, axis)) return true;
    for (const int o : node.operands)
      if (graph.value(o).type.layout.on(axis).split()) return true;
    for (int r = 0; r < node.results; ++r)
      if (graph.value(node.result + r).type.layout.on(axis).split()) return true;
    return false;
  }
  /// Whether some ranks of an axis do it, and others something else: layers of stages, what lies on one rank.
  constexpr bool stands_apart(const Node& node, const Axis* axis) const {
    return (axis == graph.stages && (graph.in_stages(node.region) || lies_at(node, axis))) || at_some(node, axis);
  }
  /// Whether some ranks of an axis, no stages, do all of it, and the others nothing.
  constexpr bool at_some(const Node& node, const Axis* axis) const {
    return axis != graph.stages && lies_at(node, axis);
  }
  constexpr bool lies_at(const Node& node, const Axis* axis) const {
    return node.results > 0 && graph.value(node.result).type.layout.on(axis).kind == PlacementKind::at;
  }
  /// The part of a rank's floating point operations that every rank of an axis does alike, from 0 to 1.
  constexpr double redundant(const Axis& axis) const {
    double same = 0;
    each_computation([&](const Node& node, double work) {
      if (!shares(node, &axis)) same += work;
    });
    const double whole = flops();
    return whole > 0 ? same / whole : 0;
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::Communication;
using internals::Plan;
using internals::Traffic;
}  // namespace parallel
