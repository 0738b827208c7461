// Fuses what stands one behind the other, as patterns.hpp says, where one makes what in its phase only the other reads:
// the nodes stay as they are, and follow each other. The arithmetic and its order stay; what is between is not written
// to memory, or, where the backward pass reads it, not read again. Sums of what a product multiplies are computed with
// it. Slices' gradients that fill the gradient of what was sliced are concatenated, not padded with zeros and added up.
// Other gradients of slices, and those of embeddings, are added to what else the gradient of the whole is made of, in
// that one's place, and not between zeros.
#pragma once
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/slice.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/program/patterns.hpp>

namespace parallel::internals {

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
  Vector<bool> handed_on{};   ///< per value: more than nodes need it
  Vector<int> updates{};      ///< per node: how many nodes before it change something in place
  Vector<int> place{};        ///< per node: how many before it compute or move something
  Vector<int> before{};       ///< per node: the node of its fusion before it, or -1
  Vector<bool> dead{};        ///< per node: nothing needs it any more

  constexpr explicit Fusing(Graph& graph) : g(graph) {
    reader.resize(g.values.size(), -1);
    read_later.resize(g.values.size(), false);
    handed_on.resize(g.values.size(), false);
    updates.resize(g.nodes.size(), 0);
    place.resize(g.nodes.size(), -1);
    before.resize(g.nodes.size(), -1);
    dead.resize(g.nodes.size(), false);
    int changes = 0;
    int place_of_next = 0;
    for (const int n : g.order) {
      const Node& node = g.nodes[n];
      const Collective moves = node.transition.collective;
      const bool looks = node.operation->aliases ||
                         (node.is(Structural::move) && (moves == Collective::retype || moves == Collective::drop));
      place[n] = place_of_next;
      place_of_next += node.operation->computes && !(looks && !node.owns) ? 1 : 0;
      updates[n] = changes += node.operation->updates ? 1 : 0;
      for (const int o : node.operands) {
        if (node.phase != g.nodes[g.values[o].node].phase)
          read_later[o] = true;
        else
          reader[o] = reader[o] == -1 ? n : -2;
      }
    }
    each_needed([&](int value) { reader[value] = -2, handed_on[value] = true; }, g);
  }

  /// Whether a value is what a reduce-scatter leaves a rank of a sum. Parts that come so are added one by one: if all
  /// were waited for together, the terms of each would stay until then.
  constexpr bool is_scattered(int value) const {
    for (;;) {
      const Node& maker = g.maker(value);
      if (maker.is(Structural::rounded))
        value = maker.operands[1];
      else if (maker.operation->view || maker.operation == &operation::cast)
        value = maker.operands[0];
      else
        return maker.transition.collective == Collective::reduce_scatter;
    }
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
    if (is_scattered(node.operands[0])) return false;
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
  /// Whether tensors stand one behind the other in one of this type, with nothing between them.
  constexpr bool fill(const Padded& found, const Type& type) const {
    std::int64_t end = 0;
    for (int i = 0; i < found.values.size(); ++i) {
      if (found.begins[i] != end) return false;
      end += g.values[found.values[i]].type.layout.dims[found.dim].size;
    }
    return end == type.layout.dims[found.dim].size;
  }
  /// Makes a sum of padded tensors that fill its result their concatenation.
  constexpr void concatenate(int n) {
    const Node& node = g.nodes[n];
    if (node.operation != &operation::add) return;
    Padded found;  // behind which nothing returns: nvcc 13 would say that its memory is lost
    if (padded(node.operands[0], n, found) && padded(node.operands[1], n, found) &&
        fill(found, g.values[node.result].type))
      concatenate(n, found);
  }
  constexpr void concatenate(int n, const Padded& found) {
    Node& node = g.nodes[n];
    node.operation = &operation::concatenate;
    node.operands = found.values;
    node.ints = {found.dim};
    node.flops = 0;
    for (const int m : found.nodes) {
      dead[m] = true;
      g.nodes[m].flops = 0;  // by which layers are cut
    }
  }

  /// Whether nothing changes a value in place as long as its region goes on.
  constexpr bool stays(int value) const {
    for (;;) {
      const Node& maker = g.maker(value);
      if (maker.is(Structural::input) || maker.is(Structural::carried)) return true;
      if (maker.operation->view || maker.operation->aliases || !maker.transition.axes.empty())
        value = maker.operands[0];
      else
        return maker.operation->computes && !maker.operation->updates && maker.is(Structural::none);
    }
  }
  /// Whether a value is the gradient of an embedding, or of a slice, that in all phases only node n reads, and can be
  /// computed there.
  constexpr bool is_of_a_part(int value, int n) const {
    const Value &made = g.values[value], &result = g.values[g.nodes[n].result];
    const Node& node = g.nodes[made.node];
    return (node.operation == &operation::embedding_derivative || node.operation == &operation::pad) &&
           reader[value] == n && !read_later[value] && made.region == result.region && made.home == result.home &&
           made.type == result.type && stays(node.operands[0]) && (node.operands.size() < 2 || stays(node.operands[1]));
  }
  /// Whether a value that in all phases only node n reads has room of its own, which lives as long as the result of n
  /// would. What stages hand to each other, or a loop to the next iteration, lies otherwise; what is accumulated there
  /// is read by no sum.
  constexpr bool gives_its_room(int value, int n) const {
    const Value &made = g.values[value], &result = g.values[g.nodes[n].result];
    const Node& maker = g.nodes[made.node];
    const bool own = maker.is(Structural::none) && maker.operation->computes && !maker.operation->aliases &&
                     (!maker.operation->updates || maker.operation == &operation::accumulate_rows ||
                      maker.operation == &operation::accumulate_slice) &&
                     maker.transition.axes.empty();
    return own && g.stages == nullptr && reader[value] == n && !read_later[value] && made.region == result.region &&
           made.home == result.home && made.type == result.type && !handed_on[g.nodes[n].result];
  }
  /// Adds the gradient of an embedding or a slice to the other operand of a sum, in its place, and no more than it has.
  constexpr void add_part(int n) {
    Node& node = g.nodes[n];
    const bool in_place = node.operation == &operation::accumulate;
    if (!in_place && node.operation != &operation::add) return;
    for (int i = 1; i >= (in_place ? 1 : 0); --i) {
      const int part = node.operands[i], sum = node.operands[1 - i];
      if (!is_of_a_part(part, n) || !(in_place || gives_its_room(sum, n))) continue;
      Node& of = g.nodes[g.values[part].node];
      const bool rows = of.operation == &operation::embedding_derivative;
      node.operation = rows ? &operation::accumulate_rows : &operation::accumulate_slice;
      node.operands = {sum, of.operands[0]};
      if (rows) node.operands.push_back(of.operands[1]);
      node.ints = of.ints;
      node.flops = g.values[node.operands[rows ? 2 : 1]].type.layout.elements();
      of.flops = 0;
      dead[g.values[part].node] = true;
      return;
    }
  }

  constexpr int first_of(int n) const {
    while (before[n] >= 0) n = before[n];
    return n;
  }
  /// Whether node m ends a fusion, or is a node alone, of all operations of a chain but the last.
  constexpr bool ends(const Chain& chain, int m) const {
    for (int i = chain.operations.size() - 2; i >= 0; --i, m = before[m])
      if (m < 0 || g.nodes[m].operation != chain.operations[i]) return false;
    return m < 0;
  }
  /// A product takes a bias with it: a number for every column.
  constexpr bool fits(int m, const Node& node, int bias_of) const {
    if (g.nodes[m].operation != &operation::matmul) return true;
    const operation::Product p(g.nodes[m].ints);
    if (p.batch > 0 || node.operation != &operation::add) return p.batch == 0;
    const Layout &bias = g.values[bias_of].type.layout, &product = g.values[g.nodes[m].result].type.layout;
    const int columns = g.values[g.nodes[m].operands[1]].type.layout.rank() - p.contracted;
    bool same = bias.rank() == columns;
    for (int d = 0; same && d < columns; ++d)
      same = bias.dims[d].size == product.dims[product.rank() - columns + d].size;
    return same;
  }
  /// Whether an element of a node's result comes from the same element, or row or number, of its operands, and from
  /// run-time numbers. The pieces of a concatenation have places of their own.
  constexpr bool by_element(int n) const {
    const Node& node = g.nodes[n];
    if (node.operands.empty() || node.results != 1 || !node.transition.axes.empty() ||
        node.operation == &operation::concatenate)
      return false;
    const Layout& result = g.values[node.result].type.layout;
    for (int i = 0; i < node.operands.size(); ++i) {
      if (g.maker(node.operands[i]).is(Structural::scalars)) continue;
      const Layout& operand = g.values[node.operands[i]].type.layout;
      const int more = result.rank() - operand.rank();
      if ((node.operation->element_by_element >> i & 1) == 0 || more < 0) return false;
      for (int d = 0; d < operand.rank(); ++d)
        if (operand.dims[d].size != 1 && operand.dims[d].size != result.dims[more + d].size) return false;
    }
    return true;
  }
  /// Whether the fusion that ends with m goes element by element, and can grow by a node without room for more: nobody
  /// else reads what is between, and of what m reads no more lives on until then than its result did.
  constexpr bool chain_by_element(int m, int n) const {
    if (read_later[g.nodes[m].result] || (place[n] != place[m] + 1 && g.nodes[m].operands.size() > 1)) return false;
    int count = 1;
    for (; m >= 0; m = before[m], ++count)
      if (!by_element(m)) return false;
    return count <= longest_fusion;
  }
  /// Whether node n can be computed with the node that makes its operand i.
  constexpr bool follows(int n, int i) const {
    const Node& node = g.nodes[n];
    const int value = node.operands[i];
    const Value &made = g.values[value], &result = g.values[node.result];
    return reader[value] == n && made.region == node.region && updates[made.node] == updates[n] &&
           made.home == result.home && made.type == result.type;
  }
  /// By the first chain that allows it, and the first operand.
  constexpr void join(int n) {
    const Node& node = g.nodes[n];
    for (int i = 0; i < node.operands.size(); ++i) {
      if (!follows(n, i)) continue;
      const int m = g.values[node.operands[i]].node;
      for (const Chain& chain : chains)
        if (chain.operations[chain.operations.size() - 1] == node.operation &&
            (chain.operand < 0 || chain.operand == i) && ends(chain, m) &&
            fits(m, node, node.operands[node.operands.size() - 1 - i]))
          return put_behind(m, n);
    }
    if (!by_element(n)) return;
    for (int i = 0; i < node.operands.size(); ++i)
      if (follows(n, i) && chain_by_element(g.values[node.operands[i]].node, n))
        return put_behind(g.values[node.operands[i]].node, n);
  }
  constexpr void put_behind(int m, int n) {
    g.nodes[m].then = n;
    before[n] = m;
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
  /// Whether a node of the fusion that ends with n reads what one of these makes.
  constexpr bool reads(int n, int sum, const Vector<int>& following) const {
    for (; n >= 0; n = before[n])
      for (const int o : g.nodes[n].operands) {
        const int maker = g.values[o].node;
        if (maker == sum) return true;
        for (int f : following)
          for (; f >= 0; f = before[f])
            if (f == maker) return true;
      }
    return false;
  }
  /// Computes a sum, which stands at `at` in the order, with a product of what it adds up: a bias's gradient with its
  /// weight's. What follows from the sum, its exchange, comes behind the product. Of a fusion the order has the last.
  constexpr void share(int at) {
    const int s = g.order[at];
    const Node& sum = g.nodes[s];
    if (sum.operation != &operation::sum_to) return;
    Vector<int> following;
    for (int i = at + 1; i < g.order.size(); ++i) {
      const int n = g.order[i];
      const Node& node = g.nodes[n];
      if (node.region != sum.region || node.phase != sum.phase || updates[n] != updates[s]) return;
      const bool follows = reads(n, s, following);
      if (follows) following.push_back(n);
      if (follows || node.operation != &operation::matmul) continue;
      for (int o = 0; o < 2; ++o)
        if (node.operands[o] == sum.operands[0] && g.values[node.result].home == g.values[sum.result].home &&
            sums_contracted(n, o, g.values[sum.result].type)) {
          put_behind(n, s);
          return move_behind(at, i, following);
        }
    }
  }
  /// Node order[first] goes to where order[last] stands, which leaves the order, and `following` behind it.
  constexpr void move_behind(int first, int last, const Vector<int>& following) {
    const int moved = g.order[first];
    int to = first;
    for (int i = first + 1, f = 0; i < last; ++i) {
      if (f < following.size() && g.order[i] == following[f])
        ++f;
      else
        g.order[to++] = g.order[i];
    }
    g.order[to++] = moved;
    for (const int f : following) g.order[to++] = f;
    g.order.erase(last);
  }
  /// Without dead nodes and those that others follow: of a fusion the last stands for all.
  constexpr void leave_last() {
    int to = 0;
    for (const int n : g.order)
      if (g.nodes[n].then < 0 && !dead[n]) g.order[to++] = n;
    g.order.resize(to);
  }
  /// Fusions one node behind the other, where their last stands.
  constexpr void put_all() {
    Vector<IndexOf<Node>> order;
    for (const int last : g.order)
      for (int n = first_of(last); n >= 0; n = g.nodes[n].then) order.push_back(n);
    g.order = static_cast<Vector<IndexOf<Node>>&&>(order);
  }
};
}  // namespace fusing

/// The graph with fusions, which stand where their last node stood.
constexpr Graph fuse(Graph g) {
  fusing::Fusing f(g);
  for (const int n : g.order) f.concatenate(n);
  for (const int n : g.order) {
    if (f.dead[n]) continue;
    f.add_part(n);
    f.join(n);
  }
  f.leave_last();
  for (int i = g.order.size() - 1; i >= 0; --i) f.share(i);  // what it moves goes behind i
  f.put_all();
  return g;
}

}  // namespace parallel::internals
