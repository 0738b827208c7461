// Joins operations that stand one behind the other, as operation::fusions lists them, where one makes what in its phase
// only the other reads. The arithmetic and its order stay; what is between is not written to memory, or, where the
// backward pass reads it, not read again. Sums of what a product multiplies are taken with it. And slices' gradients
// that fill the gradient of what was sliced are concatenated, not padded with zeros and added up.
#pragma once
#include <parallel/operation/fused.hpp>
#include <parallel/operation/slice.hpp>

namespace parallel {

namespace fusing {
/// Tensors of which each is padded with zeros to the same shape, and which are added up.
struct Padded {
  int dim = -1;
  List<int, max_node_operands> values{};
  List<std::int64_t, max_node_operands> begins{};
  Vector<int> nodes{};  ///< that pad and add
};

struct Fusing {
  Graph& g;
  /// per value: the one node of its phase that reads it; -1: none, -2: several, or more than nodes
  Vector<int> reader{};
  Vector<bool> read_later{};  ///< per value: another phase reads it
  Vector<int> updates{};      ///< per node: how many nodes before it change something in place
  Vector<int> before{};       ///< per node: the node that it has taken in, or -1
  Vector<bool> gone{};        ///< per node: another has taken it in
  bool any = false;

  constexpr explicit Fusing(Graph& graph) : g(graph) {
    reader.resize(g.values.size(), -1);
    read_later.resize(g.values.size(), false);
    updates.resize(g.nodes.size(), 0);
    before.resize(g.nodes.size(), -1);
    gone.resize(g.nodes.size(), false);
    int changes = 0;
    for (const int n : g.order) {
      const Node& node = g.nodes[n];
      updates[n] = changes += node.operation->updates ? 1 : 0;
      for (const int o : node.operands) {
        if (node.phase != g.nodes[g.values[o].node].phase)
          read_later[o] = true;
        else
          reader[o] = reader[o] == -1 ? n : -2;
      }
    }
    for (const Carry& c : g.carries) reader[c.initial] = reader[c.returned] = -2;
    for (const Stack& s : g.stacks) reader[s.inside] = -2;
    for (const Member& m : g.members)
      if (m.updated >= 0) reader[m.updated] = -2;
    for (const int o : g.outputs) reader[o] = -2;
    if (g.commit >= 0) reader[g.commit] = -2;
  }

  /// Whether a value is a sum of padded tensors, or one, that in all phases only node n reads; adds what is padded to
  /// `found`.
  constexpr bool padded(int value, int n, Padded& found) const {
    const Value &made = g.values[value], &result = g.values[g.nodes[n].result];
    const Node& node = g.nodes[made.node];
    if ((node.operation != &operation::pad && node.operation != &operation::add) || reader[value] != n ||
        read_later[value] || made.region != result.region || made.home != result.home ||
        updates[made.node] != updates[n] || !(made.type == result.type))
      return false;
    found.nodes.push_back(made.node);
    if (node.operation == &operation::add)
      return padded(node.operands[0], made.node, found) && padded(node.operands[1], made.node, found);
    if ((found.dim >= 0 && found.dim != node.ints[0]) || found.values.size() == max_node_operands) return false;
    found.dim = static_cast<int>(node.ints[0]);
    int at = found.values.size();
    found.values.push_back(node.operands[0]);
    found.begins.push_back(node.ints[1]);
    for (; at > 0 && found.begins[at - 1] > found.begins[at]; --at) {
      std::swap(found.begins[at - 1], found.begins[at]);
      std::swap(found.values[at - 1], found.values[at]);
    }
    return true;
  }
  /// Makes a sum of padded tensors that stand one behind the other, with nothing between them, their concatenation.
  constexpr void concatenate(int n) {
    Padded found;
    Node& node = g.nodes[n];
    if (node.operation != &operation::add || !padded(node.operands[0], n, found) || !padded(node.operands[1], n, found))
      return;
    std::int64_t end = 0;
    for (int i = 0; i < found.values.size(); ++i) {
      if (found.begins[i] != end) return;
      end += g.values[found.values[i]].type.layout.dims[found.dim].size;
    }
    if (end != g.values[node.result].type.layout.dims[found.dim].size) return;
    node.operation = &operation::concatenate;
    node.operands = found.values;
    node.ints = {found.dim};
    node.flops = 0;
    for (const int m : found.nodes) gone[m] = any = true;
  }

  /// A product takes a bias with it: a number for every column.
  constexpr bool fits(const operation::Fusion& f, const Node& first, int other) const {
    if (f.first != &operation::matmul) return true;
    const operation::Product p(first.ints);
    if (p.batch > 0 || f.then != &operation::add) return p.batch == 0;
    const Layout &bias = g.values[other].type.layout, &product = g.values[first.result].type.layout;
    const int columns = g.values[first.operands[1]].type.layout.rank() - p.contracted;
    bool same = bias.rank() == columns;
    for (int d = 0; same && d < columns; ++d)
      same = bias.dims[d].size == product.dims[product.rank() - columns + d].size;
    return same;
  }
  /// Whether node n can take in the node that makes its operand i.
  constexpr bool joins(const operation::Fusion& f, int n, int i) const {
    const Node& node = g.nodes[n];
    const int value = node.operands[i];
    const Value &made = g.values[value], &result = g.values[node.result];
    return f.first == g.nodes[made.node].operation && reader[value] == n && made.region == node.region &&
           updates[made.node] == updates[n] && made.home == result.home && made.type.dtype == result.type.dtype &&
           made.type.layout == result.type.layout &&
           fits(f, g.nodes[made.node], node.operands[node.operands.size() - 1 - i]);
  }
  /// The first row of the table by which node n takes in what makes its operand; false: there is none.
  constexpr bool join(int n) {
    for (const operation::Fusion& f : operation::fusions) {
      if (f.then != g.nodes[n].operation || f.shares) continue;
      const bool sum = f.then == &operation::add;
      for (int i = f.takes; i < (sum ? 2 : f.takes + 1); ++i)
        if (joins(f, n, i)) {
          take_in(f, n, i);
          return true;
        }
    }
    return false;
  }
  /// Whether a sum of operand o of node n is over what n, a product, contracts it in, and so can be taken with it;
  /// `type`: the sum's.
  constexpr bool sums_contracted(int n, int o, const Type& type) const {
    const Node& node = g.nodes[n];
    const operation::Product p(node.ints);
    const Type& shared = g.values[node.operands[o]].type;
    // the contracted dimensions come first
    const bool leads = o == 0 ? p.left_transposed != 0 : p.right_transposed == 0;
    bool same = leads && p.batch == 0 && type.layout.rank() == shared.layout.rank() - p.contracted &&
                type.dtype == g.values[node.result].type.dtype;
    for (int d = 0; same && d < type.layout.rank(); ++d)
      same = type.layout.dims[d].size == shared.layout.dims[p.contracted + d].size;
    return same;
  }
  /// Takes a sum, which stands at `at` in the order, together with a product of what it adds up: a bias's gradient with
  /// its weight's. What follows from the sum, its exchange, comes behind the product.
  constexpr void share(int at) {
    const int s = g.order[at];
    const Node& sum = g.nodes[s];
    if (sum.operation != &operation::sum_to || gone[s]) return;
    Vector<int> following;
    for (int i = at + 1; i < g.order.size(); ++i) {
      const int n = g.order[i];
      const Node& node = g.nodes[n];
      if (node.region != sum.region || node.phase != sum.phase || updates[n] != updates[s]) return;
      if (gone[n]) continue;
      bool follows = false;
      for (const int o : node.operands) {
        follows = follows || g.values[o].node == s;
        for (const int f : following) follows = follows || g.values[o].node == f;
      }
      if (follows) following.push_back(n);
      if (follows || node.operation != &operation::matmul) continue;
      for (int o = 0; o < 2; ++o)
        if (node.operands[o] == sum.operands[0] && g.values[node.result].home == g.values[sum.result].home &&
            sums_contracted(n, o, g.values[sum.result].type)) {
          take_beside(s, n, o);
          return move_behind(at, i, following);
        }
    }
  }
  constexpr void take_beside(int s, int n, int o) {
    Node joined = g.nodes[n];
    joined.operation = &operation::matmul_sum;
    joined.ints.push_back(o);
    joined.result = g.nodes[s].result;
    joined.flops += g.nodes[s].flops;
    joined.owns = joined.owns || g.nodes[s].owns;
    joined.joined = 1;
    joined.shares = true;
    g.nodes[s] = joined;
    g.values[g.nodes[n].result].node = s;
    before[s] = n;
    gone[n] = any = true;
  }
  /// Node order[first] goes to where order[last] stands, which it has taken in, and `following` behind it.
  constexpr void move_behind(int first, int last, const Vector<int>& following) {
    const int moved = g.order[first], taken = g.order[last];
    int to = first;
    for (int i = first + 1, f = 0; i < last; ++i) {
      if (f < following.size() && g.order[i] == following[f])
        ++f;
      else
        g.order[to++] = g.order[i];
    }
    g.order[to++] = taken;
    g.order[to++] = moved;
    for (const int f : following) g.order[to++] = f;
  }
  constexpr void take_in(const operation::Fusion& f, int n, int i) {
    const int m = g.values[g.nodes[n].operands[i]].node;
    Node joined = g.nodes[m];  // whose line and member it keeps
    const Node& node = g.nodes[n];
    joined.operation = f.fused;
    for (int o = 0; o < node.operands.size(); ++o)
      if (o != i) joined.operands.push_back(node.operands[o]);
    for (const std::int64_t a : node.ints) joined.ints.push_back(a);
    if (!node.ints.empty()) {
      joined.reals[0] = node.reals[0];
      joined.reals[1] = node.reals[1];
    }
    joined.result = node.result;
    joined.flops += node.flops;
    joined.owns = node.owns;
    ++joined.joined;
    g.nodes[n] = joined;
    before[n] = m;
    gone[m] = any = true;
  }
};

/// A graph without the nodes that others have taken in, whose results now are results of those.
struct Renumbering {
  Fusing& f;
  Vector<Value> values{};
  Vector<Node> nodes{};
  Vector<int> value_of{}, node_of{};  ///< new numbers

  constexpr explicit Renumbering(Fusing& fusing) : f(fusing) {
    value_of.resize(f.g.values.size(), -1);
    node_of.resize(f.g.nodes.size(), -1);
  }

  constexpr void take_values(int n, bool last, bool shares) {
    if (f.before[n] >= 0) take_values(f.before[n], false, shares);
    node_of[n] = nodes.size();
    const int made = last ? f.g.nodes[n].results : 1;
    for (int r = 0; r < made; ++r) {
      const int old = f.g.nodes[n].result + r;
      value_of[old] = values.size();
      Value v = f.g.values[old];
      v.passed = !last && !shares && !f.read_later[old];
      values.push_back(v);
    }
  }
  constexpr void run() {
    Graph& g = f.g;
    Vector<int> results;  // the first of each node, new
    Vector<IndexOf<Node>> order;
    for (int n = 0; n < g.nodes.size(); ++n) {
      if (f.gone[n]) continue;
      results.push_back(values.size());
      take_values(n, true, g.nodes[n].shares);
      nodes.push_back(g.nodes[n]);
      nodes.back().results = values.size() - results.back();
    }
    for (const int n : g.order)
      if (!f.gone[n]) order.push_back(n);
    g.order = static_cast<Vector<IndexOf<Node>>&&>(order);
    g.values = static_cast<Vector<Value>&&>(values);
    g.nodes = static_cast<Vector<Node>&&>(nodes);
    each_index<Value>([&](int& value) { value = value < 0 ? value : value_of[value]; }, g);
    each_index<Node>([&](int& node) { node = node < 0 ? node : node_of[node]; }, g);
    for (int n = 0; n < g.nodes.size(); ++n) g.nodes[n].result = results[n];
  }
};
}  // namespace fusing

/// The graph with fused operations, which stand where their last part stood.
constexpr Graph fuse(Graph g) {
  fusing::Fusing f(g);
  for (const int n : g.order) {
    f.concatenate(n);
    f.join(n);
  }
  for (int i = g.order.size() - 1; i >= 0; --i) f.share(i);  // what it moves goes behind i
  if (f.any) fusing::Renumbering(f).run();
  return g;
}

}  // namespace parallel
