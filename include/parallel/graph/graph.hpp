// The program as plain values: what every pass reads and writes. Nothing in it knows a mesh; extents of axes come
// later.
#pragma once
#include <array>

#include <parallel/algebra/route.hpp>
#include <parallel/algebra/rule.hpp>
#include <parallel/graph/operation.hpp>
#include <parallel/meta/here.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/meta/members.hpp>
#include <parallel/meta/name.hpp>

namespace parallel {
struct Schedule;

namespace internals {
struct Value;
struct Node;
struct Region;
struct Member;

/// Where one of a graph's records stands in its list; -1: none. As good as the number that it is. What writes
/// and reads graphs knows by the types of a record's members which numbers lead where.
template <class Record>
struct IndexOf {
  int number = -1;
  constexpr IndexOf() = default;
  constexpr IndexOf(int n) : number(n) {}
  constexpr operator int() const { return number; }
};
/// Several of them.
template <class Record, int capacity>
struct IndicesOf : List<int, capacity> {
  using List<int, capacity>::List;
  constexpr IndicesOf() = default;
  constexpr IndicesOf(const List<int, capacity>& numbers) : List<int, capacity>(numbers) {}
};

/// The layout of several equal tensors one behind the other.
constexpr Layout with_leading(const Layout& layout, const Dim& count) {
  Layout result = layout;
  result.dims.count = 0;
  result.dims.push_back(count);
  for (const Dim& d : layout.dims) result.dims.push_back(d);
  for (Placed& p : result.others) p.placement = behind(p.placement, 1);
  return result;
}

/// The layout of one of them.
constexpr Layout without_leading(const Layout& layout) {
  Layout result = layout;
  result.dims.count = 0;
  for (int d = 1; d < layout.rank(); ++d) result.dims.push_back(layout.dims[d]);
  for (Placed& p : result.others) p.placement = behind(p.placement, -1);
  return result;
}

/// An operation as it was applied in the user's program, before any move: what a node comes from. Nodes of the backward
/// pass share the origin of the node that they go back through.
struct Origin {
  const Operation* operation = nullptr;
  IndicesOf<Value, max_operands> operands{};  ///< the values that met, as they were
  AxisList axes{};                            ///< the axes that the rule of derivation looked at
  List<int, max_axes> rules{};                ///< for each of them the rule that decided, 1 to 5
  Source source{};
  IndexOf<Member> member{};  ///< the member that its result is charged to, or -1
  IndexOf<Value> result{};   ///< the value that it gave

  constexpr bool is(Structural which) const { return operation != nullptr && operation->structural == which; }
};

/// Whether a forward value is kept for the backward pass, or computed again from what it is made of.
enum class Keep : std::uint8_t {
  saved,
  recomputed,  ///< where the backward pass reads it
  repeated,    ///< also where nothing reads it
  on_host,     ///< in the memory of the host, and fetched where the backward pass reads it
};
constexpr Keep last_of(Keep) { return Keep::on_host; }

/// Stages of a pipeline, while it is traced: a set of these. In a finished graph the layouts say it, as At on the axis
/// of the stages.
namespace staging {
inline constexpr std::uint8_t first = 1, between = 2, last = 4, all = 7;
constexpr std::uint8_t both(std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a & b); }
}  // namespace staging

struct Value {
  Type type{};
  Kind kind = Kind::data;
  IndexOf<Node> node{};
  IndexOf<Region> region = 0;
  IndexOf<Member> member{};     ///< the member that made it, or -1
  bool differentiable = false;  ///< a gradient is wanted through it
  Keep keep = Keep::saved;
  int stack = 0;                     ///< > 0: the leading dimension counts this many layers
  std::uint8_t home = staging::all;  ///< the stages that hold it
  IndexOf<Value> again{};            ///< backward: the forward value that this is, computed again; or -1
};

inline constexpr int max_node_operands = 10;
inline constexpr int longest_fusion = 4;  ///< nodes that follow each other by Node::then

struct Node {
  const Operation* operation = nullptr;
  IndicesOf<Value, max_node_operands> operands{};
  IndexOf<Value> result = 0;  ///< the first result; the others follow it
  int results = 0;
  Ints ints{};
  std::array<double, 2> reals{};
  Transition transition{};
  Phase phase = Phase::forward;
  IndexOf<Region> region = 0;
  /// the loop over micro-batches in whose last iteration alone it happens, in its operand's place, and behind which
  /// alone its result is read; or -1
  IndexOf<Region> in_last{};
  IndexOf<Origin> origin{};  ///< what of the user's program it comes from, or -1
  IndexOf<Member> member{};
  std::int64_t flops = 0;  ///< of the whole, unsplit operation
  bool owns = false;       ///< its result has storage of its own also where nothing moves: an iteration hands it on
  /// the next node of its fusion, which is computed with it and stands behind it in the order; or -1
  IndexOf<Node> then{};

  constexpr bool is(Structural which) const { return operation->structural == which; }
};

/// steps: of a Scan, which share their parameters, as layers do not
enum class RegionKind : std::uint8_t { program, layers, micro_batches, steps };
constexpr RegionKind last_of(RegionKind) { return RegionKind::steps; }
/// Whether the backward pass goes through the iterations again, the last first; micro-batches go both ways each.
constexpr bool goes_back(RegionKind k) { return k == RegionKind::layers || k == RegionKind::steps; }

/// A part of the program that runs `count` times.
struct Region {
  RegionKind kind = RegionKind::program;
  IndexOf<Region> parent{};
  int count = 1;
  int blocks = 1;         ///< of layers: how many of them one iteration takes, one behind the other
  bool reversed = false;  ///< the last iteration's slices come first (the backward pass of layers)
  /// regions of one loop share the index of their iterations: the forward and the backward pass of layers
  IndexOf<Region> loop{};
  IndexOf<Node> begin{};  ///< its first and last node
  IndexOf<Node> end{};
  bool staged = false;  ///< its iterations are shared out over `Graph::stages`

  constexpr int layers() const { return count * blocks; }
};

/// A value that an iteration takes from the one before it.
struct Carry {
  IndexOf<Region> region = 0;
  IndexOf<Value> initial = 0;   ///< outside: what the first iteration takes
  IndexOf<Value> inside = 0;    ///< what an iteration takes
  IndexOf<Value> returned = 0;  ///< inside: what it hands on
  IndexOf<Value> result = 0;    ///< outside: what the last iteration returned
};

/// A value of one iteration whose iterations together are a value outside, with a leading dimension.
struct Stack {
  IndexOf<Region> region = 0;
  IndexOf<Value> inside = 0;
  IndexOf<Value> outside = 0;
};

enum class Role : std::uint8_t { parameter, state, input };
constexpr Role last_of(Role) { return Role::input; }

/// What exists before the program runs, by its path in the user's structs: parameters, optimizer state, inputs.
struct Member {
  Name path{};
  Role role = Role::parameter;
  Type type{};  ///< as it lies at rest: `Stored` where that is said
  IndexOf<Value> value{};
  int layers = 0;            ///< > 0: the leading dimension counts layers
  IndexOf<Value> updated{};  ///< the value that the optimizer, or what is remembered, leaves in its place
  IndexOf<Member> of{};      ///< state: the parameter it belongs to
  Initializer initializer{};
};

/// A value that a program gives out, and what it is called.
struct Output {
  IndexOf<Value> value{};
  Name name{};
};

/// What a graph says beside its lists, whether it is written, frozen as a constant or looked at.
struct GraphBase {
  IndexOf<Value> scalar_value{};  ///< f64[count]: all scalars
  /// a scalar that is 0 where the optimizer phase's updates are to be skipped on every rank; -1: never
  IndexOf<Value> commit{};
  /// a parameter of a block outside its Layers, one without a path, which no module has, or a memory in a training; -1:
  /// none; or of which the optimizer made what is `unfit`
  IndexOf<Member> misused{};
  Reason unfit = Reason::none;         ///< why `misused` cannot be updated, or a node not be trained through
  const Axis* stages = nullptr;        ///< the axis over which layers are shared out, if any
  const Schedule* schedule = nullptr;  ///< the order in which a stage takes the micro-batches
  int chunks = 1;                      ///< slices of the layers that each stage has
  bool balanced = false;               ///< its layers are cut by cost, not evenly
  /// micro-batches find different weights: each stage updates its own when it has a gradient
  bool stashed = false;

  constexpr GraphBase& base() { return *this; }
  constexpr const GraphBase& base() const { return *this; }
};

/// The lists of a graph. `Items<Record, i>` is how the i-th is kept: a graph that is written has vectors, a constant
/// arrays, and what is read spans.
template <template <class Record, int i> class Items>
struct GraphLists {
  Items<Value, 0> values{};
  Items<Node, 1> nodes{};
  Items<IndexOf<Node>, 2> order{};  ///< the program's order of nodes
  Items<Region, 3> regions{};
  Items<Carry, 4> carries{};
  Items<Stack, 5> stacks{};
  Items<Origin, 6> origins{};
  Items<Member, 7> members{};
  Items<Name, 8> scalars{};     ///< run-time numbers: learning rate, step, seed
  Items<char, 9> characters{};  ///< of all names, behind each a zero
  Items<Output, 10> outputs{};

  constexpr GraphLists& lists() { return *this; }
  constexpr const GraphLists& lists() const { return *this; }
};
template <class Record, int>
using InVectors = Vector<Record>;

struct Graph : GraphBase, GraphLists<InVectors> {
  constexpr std::string_view text(const Name& name) const {
    return {characters.begin() + name.first, static_cast<std::size_t>(name.size)};
  }
  /// A new name: one of this graph's, or none, and behind it texts that are not of this graph.
  constexpr Name name(const Name& of, std::initializer_list<std::string_view> behind) {
    Name made{characters.size(), of.size};
    for (const std::string_view& text : behind) made.size += static_cast<int>(text.size());
    char* to = characters.extend(made.size + 1);
    const char* from = characters.begin() + of.first;
    for (int i = 0; i < of.size; ++i) *to++ = from[i];
    for (const std::string_view& text : behind)
      for (const char c : text) *to++ = c;
    *to = 0;
    return made;
  }

  constexpr const Node& maker(int value) const { return nodes[values[value].node]; }
  constexpr bool inside(int region, int ancestor) const {
    for (; region >= 0; region = regions[region].parent)
      if (region == ancestor) return true;
    return false;
  }
  constexpr Source source(const Node& node) const { return node.origin < 0 ? Source{} : origins[node.origin].source; }
  /// The member that made a result: the first parameter among the operands, else what made the first operand that has a
  /// maker.
  constexpr int charged(const List<int, max_operands>& operands) const {
    for (const int o : operands)
      if (values[o].kind == Kind::parameter && values[o].member >= 0) return values[o].member;
    for (const int o : operands)
      if (values[o].member >= 0) return values[o].member;
    return -1;
  }
  /// Floating point operations of the whole, unsplit operation.
  constexpr std::int64_t flops(const Node& node) const {
    if (node.operation->flops != nullptr) return node.operation->flops(arguments(node));
    return node.operation->computes && node.results > 0 ? values[node.result].type.layout.elements() : 0;
  }
  constexpr Arguments arguments(const Node& node) const {
    Arguments a;
    for (int i = 0; i < node.operands.size() && i < max_operands; ++i) {
      a.types.push_back(values[node.operands[i]].type);
      a.kinds.push_back(values[node.operands[i]].kind);
    }
    a.ints = node.ints;
    return a;
  }
};

/// f(list) for every list of a graph, or f(list, list of the other) of two that may be kept otherwise.
template <class F, class G>
constexpr void each_list(F f, G& graph) {
  meta::with_members(graph.lists(), [&](auto&... lists) { (f(lists), ...); });
}
template <class F, class G, class Other>
constexpr void each_list(F f, G& graph, Other& other) {
  meta::with_members(graph.lists(), [&](auto&... lists) {
    meta::with_members(other.lists(), [&](auto&... others) { (f(lists, others), ...); });
  });
}

/// f(value) for every value that is needed by something else than nodes: loops, stacks, updates, results.
template <class F, class G>
constexpr void each_needed(F f, const G& graph) {
  for (const Carry& c : graph.carries) {
    f(c.initial);
    f(c.returned);
  }
  for (const Stack& s : graph.stacks) f(s.inside);
  for (const Member& m : graph.members)
    if (m.updated >= 0) f(m.updated);
  for (const Output& o : graph.outputs) f(o.value);
  if (graph.commit >= 0) f(graph.commit);
}

/// f(number) of every index of a Record that a graph's records have.
template <class Record, class F, class G>
constexpr void each_index(F f, G& graph) {
  const auto in = [&]<class Field>(Field& field) {
    if constexpr (std::is_same_v<std::remove_const_t<Field>, IndexOf<Record>>)
      f(field.number);
    else if constexpr (requires { []<int n>(const IndicesOf<Record, n>&) {}(field); })
      for (auto& number : field) f(number);
  };
  each_list(
      [&](auto& items) {
        using Item = std::remove_cvref_t<decltype(*items.begin())>;
        for (auto& item : items)
          if constexpr (std::is_same_v<Item, IndexOf<Record>>)
            in(item);
          else if constexpr (std::is_aggregate_v<Item>)
            meta::with_members(item, [&](auto&... members) { (in(members), ...); });
      },
      graph);
  meta::with_members(graph.base(), [&](auto&... members) { (in(members), ...); });
}
}  // namespace internals

}  // namespace parallel
