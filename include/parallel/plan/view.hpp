// A finished graph to read: the same whether it was built a moment ago or is a constant of the program.
#pragma once
#include <concepts>

#include <parallel/graph/structure.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals {

/// A part of a stage's work on a micro-batch: what it does of one kind with one chunk, as straight as a program without
/// stages.
struct StagePart {
  Work work = Work::forward;
  int chunk = 0;
  int begin = 0, end = 0;  ///< its nodes in the order, of which the last ends the loop over micro-batches
};
/// The turn of a part, as the schedule has it.
struct Slot {
  int part = 0;
  int micro_batch = 0;
  int lane = 0;  ///< where what its parts hand to each other lies
};

/// A std::span whose elements a compiler reaches in one step.
template <class Record>
struct Records : std::span<const Record> {
  using std::span<const Record>::span;
  constexpr const Record* begin() const { return this->data(); }
  constexpr const Record* end() const { return this->data() + this->size(); }
  constexpr const Record& operator[](std::size_t i) const { return this->data()[i]; }
};
template <class Record, int>
using InSpans = Records<Record>;

struct GraphView : GraphBase, GraphLists<InSpans> {
  /// of the stage that sees it, one behind the other in the order, and their turns; empty where there are no stages
  Records<StagePart> parts{};
  Records<Slot> slots{};

  constexpr GraphView() = default;
  /// Of a graph, or of the constant of one.
  template <class Graph>
  requires(std::derived_from<Graph, GraphBase> && !std::same_as<Graph, GraphView>) constexpr GraphView(const Graph& g)
      : GraphBase(g) {
    each_list(
        [](auto& seen, const auto& list) {
          seen = {list.data(), static_cast<std::size_t>(list.size())};
        },
        *this, g);
  }

  constexpr const Value& value(int i) const { return values[static_cast<std::size_t>(i)]; }
  constexpr const Node& node(int i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr const Region& region(int i) const { return regions[static_cast<std::size_t>(i)]; }
  constexpr const Member& member(int i) const { return members[static_cast<std::size_t>(i)]; }
  constexpr const StagePart& part(int i) const { return parts[static_cast<std::size_t>(i)]; }
  constexpr std::string_view text(const Name& name) const {
    return {characters.data() + name.first, static_cast<std::size_t>(name.size)};
  }
  /// Of a member, "blocks.*.mlp.down". A zero stands behind it, as behind every name.
  constexpr std::string_view path(const Member& m) const { return text(m.path); }
  constexpr std::string_view path(int m) const { return text(member(m).path); }
  constexpr const Node& maker(int v) const { return node(value(v).node); }
  /// What of the user's program a node comes from; empty for what nobody wrote.
  constexpr Origin origin(const Node& n) const {
    return n.origin < 0 ? Origin{} : origins[static_cast<std::size_t>(n.origin)];
  }
  constexpr int size_of_values() const { return static_cast<int>(values.size()); }

  /// Whether a region is `ancestor` or lies within it.
  constexpr bool inside(int r, int ancestor) const {
    for (; r >= 0; r = region(r).parent)
      if (r == ancestor) return true;
    return false;
  }
  /// The child of `outer` that holds `inner`, or -1 where `inner` does not lie within a child of `outer`.
  constexpr int child_towards(int outer, int inner) const {
    while (inner >= 0 && inner != outer) {
      if (region(inner).parent == outer) return inner;
      inner = region(inner).parent;
    }
    return -1;
  }
  /// How many micro-batches and chunks a stage has under way at one time.
  constexpr int lanes() const {
    int n = 1;
    for (const Slot& s : slots) n = s.lane >= n ? s.lane + 1 : n;
    return n;
  }
  /// Whether iterations of the region are shared out over stages.
  constexpr bool in_stages(int r) const {
    for (; r >= 0; r = region(r).parent)
      if (region(r).staged) return true;
    return false;
  }
  /// The loop over the layers that are shared out over stages.
  constexpr Region staged_layers() const {
    for (const Region& r : regions)
      if (r.staged) return r;
    return {};
  }
  /// How often a node happens in one step.
  constexpr std::int64_t times(const Node& node) const {
    std::int64_t n = 1;
    for (int r = node.region; r >= 0; r = region(r).parent) n *= r == node.in_last ? 1 : region(r).count;
    return n;
  }
};

/// Whether a loop fills a stack; else its iterations take slices of it.
constexpr bool fills(const GraphView& g, const Stack& s) {
  return s.outside >= 0 && g.maker(s.outside).is(Structural::stacked) && !g.maker(s.inside).is(Structural::layer);
}

/// What a slot is in the schedule.
constexpr Task task_of(const GraphView& g, const Slot& slot) {
  return {g.part(slot.part).work, slot.micro_batch, g.part(slot.part).chunk};
}

/// Whether an edge between stages sends or receives: the first and the last virtual stage keep what they have.
constexpr bool edge_calls(const Transition& t, const Mesh& mesh, int chunk) {
  const int stages = mesh.extent(t.axes), at = chunk * stages + mesh.here;
  const bool forward = (t.along > 0) == (t.collective == Collective::send);
  return stages > 1 && (forward ? at < t.chunks * stages - 1 : at > 0);
}
/// Whether a move to one rank leads where the value is already, as one from At<1> to At<-1> of two ranks.
constexpr bool is_there(const Transition& t, const Mesh& mesh) {
  const int n = mesh.extent(t.axes);
  return t.collective == Collective::send && t.along == 0 && holds(t.from, first_holder(t.to, n), n);
}
/// Whether a move sends, receives or copies anything on this mesh (of an edge, in some chunk): an axis of extent 1
/// causes no call.
constexpr bool calls(const Node& node, const Mesh& mesh) {
  const Transition& t = node.transition;
  if (t.along != 0) return edge_calls(t, mesh, 0) || edge_calls(t, mesh, t.chunks - 1);
  return !t.axes.empty() && communicates(t.collective) &&
         (copies(t.collective) || (mesh.extent(t.axes) > 1 && !is_there(t, mesh)));
}
/// Whether any annotation of a program names an axis.
constexpr bool names(const GraphView& g, const Axis* axis) {
  for (const Value& v : g.values)
    if (!(v.type.layout.on(axis) == Invariant)) return true;
  return false;
}
/// As what a program's moves name its ranks' hosts; null where nothing is stored there.
constexpr const Axis* host_axis(const GraphView& g) {
  for (const Node& n : g.nodes)
    if (copies(n.transition.collective)) return n.transition.axes[0];
  return nullptr;
}
/// Of the axes of a move those on which it sends on this mesh, as they have several ranks; where none has, all.
constexpr AxisList sending_axes(const AxisList& axes, const Mesh& mesh) {
  AxisList several;
  for (const Axis* a : axes)
    if (mesh.extent(a) > 1) several.push_back(a);
  return several.empty() ? axes : several;
}
/// Whether a node's result is no other than its operand on this mesh.
constexpr bool looks_at(const GraphView& g, const Node& node, const Mesh& mesh) {
  if (node.operation->aliases) return true;
  if (node.is(Structural::rounded)) return !calls(g.maker(node.operands[1]), mesh);
  const Transition& t = node.transition;
  if (t.along != 0 && mesh.extent(t.axes) > 1)
    return t.collective == Collective::send || (t.chunks == 1 && !edge_calls(t, mesh, 0));
  return !t.axes.empty() && (t.collective == Collective::retype || t.collective == Collective::drop ||
                             is_there(t, mesh) || (mesh.extent(t.axes) == 1 && !copies(t.collective)));
}
/// Whether it is its operand's storage: where it has none of its own.
constexpr bool is_alias(const GraphView& g, const Node& node, const Mesh& mesh) {
  return !node.owns && looks_at(g, node, mesh);
}

}  // namespace parallel::internals
