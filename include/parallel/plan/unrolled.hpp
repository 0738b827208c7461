// Ring attention on a mesh: what stood in the program as one node becomes attention to a part of the keys at a time and
// rotations between them, as many as the axis has ranks. Passes behind it see ordinary nodes.
#pragma once
#include <parallel/graph/structure.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/plan/view.hpp>

namespace parallel::internals {

/// Whether a program has a ring to unroll. What it was stays a node of the unrolled graph, outside of its order.
constexpr bool has_rings(const GraphView& g) {
  for (const Node& n : g.nodes)
    if (n.operation->ring) return true;
  return false;
}

/// How many ranks along its ring a value has come, of keys, values and what says which are seen: a rank has the part of
/// the rank so many before it. Sums of gradients are counted from where they were added up last; nobody asks where they
/// lie.
constexpr int rotations(const GraphView& g, int value) {
  int n = 0;
  for (; g.maker(value).transition.collective == Collective::rotate; value = g.maker(value).operands[0]) ++n;
  return n;
}
/// The rank whose part of a value `rank` has.
constexpr int owner(const GraphView& g, int value, const Mesh& mesh, int rank) {
  const int n = rotations(g, value);
  if (n == 0) return rank;
  const Axis* const axis = g.maker(value).transition.axes[0];
  int owner = 0;
  for (int i = 0; i < mesh.count; ++i) {
    const int size = mesh.axes[i].size, here = mesh.coordinate(rank, mesh.axes[i].axis);
    owner = owner * size + (mesh.axes[i].axis == axis ? (here + size - n % size) % size : here);
  }
  return owner;
}

namespace unrolling {
struct Unrolling {
  Graph graph{};
  const Mesh& mesh;

  constexpr explicit Unrolling(const Mesh& m) : mesh(m) {}

  constexpr Graph of(const GraphView& from) {
    static_cast<GraphBase&>(graph) = from;
    each_list(
        [](auto& to, const auto& list) {
          for (const auto& item : list) to.push_back(item);
        },
        graph, from);
    graph.order.clear();
    for (const int n : from.order) {
      if (!graph.nodes[n].operation->ring)
        graph.order.push_back(n);
      else
        unroll(graph.nodes[n]);
    }
    return static_cast<Graph&&>(graph);
  }

 private:
  /// One more node of what `ring_` stood for. `result`: the first of values that are there, or -1 for new ones like
  /// `like`.
  constexpr int emit(const Operation& operation, const List<int, max_node_operands>& operands,
                     const List<int, max_results>& like, int result = -1) {
    Node node = ring_;
    node.operation = &operation;
    node.operands = operands;
    node.results = like.size();
    node.result = result >= 0 ? result : graph.values.size();
    if (result < 0)
      for (const int of : like) {
        Value value = graph.values[of];
        value.node = -1;
        value.region = ring_.region;
        value.keep = Keep::saved;
        value.again = -1;
        value.stack = 0;
        graph.values.push_back(value);
      }
    return put(node);
  }
  constexpr int put(Node node) {
    const int number = graph.nodes.size();
    for (int r = 0; r < node.results; ++r) graph.values[node.result + r].node = number;
    if (node.operation != &operation::attention && node.operation != &operation::attention_derivative) {
      node.ints = {};
      node.flops = graph.values[node.result].type.layout.elements();
    }
    graph.nodes.push_back(node);
    graph.order.push_back(number);
    return node.result;
  }
  /// To the next rank of the ring: a part of operand o, or of its gradient.
  constexpr int rotate(int value, int o) {
    const Node ring = ring_;
    ring_.transition.collective = Collective::rotate;
    ring_.transition.axes = {axis_};
    ring_.transition.from = ring_.transition.to = split(1);
    ring_.member = graph.values[operands_[o]].member;
    const int result = emit(operation::move, {value}, {value});
    ring_ = ring;
    return result;
  }
  /// The arithmetic of a step: in the first each rank has the keys of its own positions, of which causal queries see
  /// half, in the i-th behind it n - i ranks those of earlier positions, the others none that they see; where positions
  /// stand in an order all ranks see half of them in each.
  constexpr std::int64_t flops_of_step(std::int64_t all, int i) const {
    if (ring_.ints[0] == 0 || i == 0 || balanced_) return all / n_;
    return all / n_ * 2 * (n_ - i) / n_;
  }
  constexpr int attend(const Operation& operation, int i, int result = -1) {
    const std::int64_t all = ring_.flops;
    ring_.flops = flops_of_step(all, i);
    const int made = emit(operation, operands_, results_, result);
    ring_.flops = all;
    return made;
  }
  /// Keys, values and, where there is a mask or documents, which of them are seen.
  constexpr int travelling() const { return operation::Attending(ring_.ints).of_keys() - 1; }
  constexpr List<int, max_node_operands> rotated() {
    List<int, max_node_operands> next = operands_;
    for (int o = 1; o <= travelling(); ++o) next[o] = rotate(operands_[o], o);
    return next;
  }

  constexpr void unroll(const Node ring) {  // not by reference: nodes grow
    ring_ = ring;
    operands_ = {};
    for (const int o : ring.operands) operands_.push_back(o);
    results_ = {};
    for (int r = 0; r < ring.results; ++r) results_.push_back(ring.result + r);
    axis_ = graph.values[operands_[1]].type.layout.dims[1].axes[0];
    n_ = mesh.extent(axis_);
    balanced_ = graph.values[operands_[1]].type.layout.dims[1].ordered();
    const bool back = ring.results == 3;
    if (n_ == 1)
      attend(back ? operation::attention_derivative : operation::attention, 0, ring.result);
    else
      back ? gradients() : results();
  }
  constexpr void results() {
    int attended = -1;
    for (int i = 0; i < n_; ++i) {
      const List<int, max_node_operands> next = i + 1 < n_ ? rotated() : operands_;
      const int own = attend(operation::attention, i);
      attended = i == 0 ? own
                        : emit(operation::join_attention, {attended, attended + 1, own, own + 1},
                               {results_[0], results_[1]}, i + 1 < n_ ? -1 : results_[0]);
      operands_ = next;
    }
  }
  /// Gradients of keys and values follow them one rank behind: what is added up of a part begins at the rank behind its
  /// own, and is home after n - 1 rotations, where its own rank's joins.
  constexpr void gradients() {
    int queries = -1, first = -1, moved[2] = {-1, -1};
    for (int i = 0; i < n_; ++i) {
      const List<int, max_node_operands> next = i + 1 < n_ ? rotated() : operands_;
      const int own = attend(operation::attention_derivative, i);
      if (i == 0) first = own;
      if (i + 1 == n_)
        finish(queries, own, results_[0]);
      else
        queries = i == 0 ? in_float(own) : add_to(queries, own);
      for (int s = 0; s < 2 && i > 0; ++s)
        moved[s] = rotate(i == 1 ? in_float(own + 1 + s) : add_to(moved[s], own + 1 + s), 1 + s);
      operands_ = next;
    }
    for (int s = 0; s < 2; ++s) finish(moved[s], first + 1 + s, results_[1 + s]);
  }
  /// Terms in bf16 or f16 are added up in f32, and so they travel, as other sums over ranks.
  constexpr int in_float(int value) {
    const DType dtype = graph.values[value].type.dtype;
    if (precise(dtype) == dtype) return value;
    const int result = emit(operation::cast, {value}, {value});
    graph.values[result].type.dtype = precise(dtype);
    return result;
  }
  /// In the place of the sum.
  constexpr int add_to(int sum, int term) { return emit(operation::accumulate, {sum, in_float(term)}, {sum}); }
  /// The last term, which makes a value that is there.
  constexpr void finish(int sum, int term, int result) {
    if (graph.values[sum].type.dtype == graph.values[result].type.dtype)
      emit(operation::add, {sum, term}, {result}, result);
    else
      emit(operation::cast, {add_to(sum, term)}, {result}, result);
  }

  Node ring_{};
  List<int, max_node_operands> operands_{};
  List<int, max_results> results_{};
  const Axis* axis_ = nullptr;
  int n_ = 1;
  bool balanced_ = false;
};
}  // namespace unrolling

/// The graph of a program on a mesh that has been checked. Of ring attention k and v, and their gradients behind them,
/// are sent n - 1 times each.
constexpr Graph unrolled(const GraphView& graph, const Mesh& mesh) { return unrolling::Unrolling(mesh).of(graph); }

}  // namespace parallel::internals
