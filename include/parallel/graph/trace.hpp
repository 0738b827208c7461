// Writes the graph while the user's program runs on symbolic values: nodes, the moves that the derivation asks for,
// regions.
#pragma once
#include <parallel/graph/casting.hpp>
#include <parallel/graph/infer.hpp>

namespace parallel::internals {

class Trace {
 public:
  Graph graph{};
  bool training = true;
  bool rounded_sums = false;  ///< what is bf16 is added as it is
  Phase phase = Phase::forward;
  int origin = -1, member = -1, region = 0;
  Vector<casting::Cast> casts{};
  int draws = 0;  ///< how many random operations there are: each has its own stream

  constexpr Trace() { graph.regions.push_back({.loop = 0}); }

  /// Adds a node and its results where the program stands, or, for an outer region, before the region that is being
  /// written.
  constexpr int emit(const Operation& operation, const List<int, max_node_operands>& operands,
                     const List<Type, max_results>& types, Kind kind, const Ints& ints = {}, double first = 0,
                     double second = 0, int in_region = -1) {
    Node node;
    node.operation = &operation;
    node.operands = operands;
    node.result = graph.values.size();
    node.results = types.size();
    node.ints = ints;
    node.reals[0] = first;
    node.reals[1] = second;
    node.phase = phase;
    node.region = in_region < 0 ? region : in_region;
    node.origin = origin;
    node.member = member;
    bool differentiable = false;
    std::uint8_t home = staging::all;
    for (const int o : operands) {
      differentiable = differentiable || graph.values[o].differentiable;
      home = staging::both(home, graph.values[o].home);
    }
    for (const Type& t : types) {
      Value value;
      value.type = t;
      value.kind = kind;
      value.node = graph.nodes.size();
      value.region = node.region;
      value.member = member;
      value.differentiable = differentiable && t.dtype != DType::i32;
      value.home = home;
      for (const int o : operands)  // a sum, a move or a copy of stacked layers is one too
        if (graph.values[o].stack > 0 && same_extents(graph.values[o].type.layout, t.layout))
          value.stack = graph.values[o].stack;
      graph.values.push_back(value);
    }
    insert(graph.nodes.size(), node.region);
    graph.nodes.push_back(node);
    return node.result;
  }

  /// A parameter, state or input of the program.
  constexpr int declare(const Operation& operation, const Member& described, Kind kind, bool differentiable) {
    const int here = member;
    origin = -1;  // nobody applied anything
    member = described.role == Role::input ? -1 : graph.members.size();
    const int value = emit(operation, {}, {described.type}, kind, {graph.members.size()}, 0, 0,
                           described.role == Role::input ? region : 0);
    graph.values[value].differentiable = differentiable;
    graph.values[value].stack = described.role == Role::input ? 0 : described.layers;
    graph.members.push_back(described);
    graph.members.back().value = value;
    member = here;
    return value;
  }

  /// The position of a run-time scalar among all of them.
  template <std::size_t n>
  constexpr int scalar(const char (&name)[n]) {
    return scalar(std::string_view(name, n - 1));  // compilers would count its characters
  }
  constexpr int scalar(std::string_view name) {
    if (graph.scalar_value < 0)
      graph.scalar_value = emit(operation::scalars, {}, {{DType::f64, {}}}, Kind::data, {}, 0, 0, 0);
    for (int i = 0; i < graph.scalars.size(); ++i)
      if (graph.text(graph.scalars[i]) == name) return i;
    graph.scalars.push_back(graph.name({}, {name}));
    Layout layout;
    layout.dims.push_back(Dim(graph.scalars.size()));
    graph.values[graph.scalar_value].type.layout = layout;
    return graph.scalars.size() - 1;
  }

  /// What nodes come from that are emitted from here on.
  constexpr int from(const Origin& what) {
    graph.origins.push_back(what);
    return origin = graph.origins.size() - 1;
  }

  /// Brings a value to another layout, each hop made once and shared.
  constexpr int enter(int value, const Layout& to) {
    if (graph.values[value].type.layout == to) return value;
    for (const Hop& hop : route(graph.values[value].type.layout, to).hops) value = move(value, hop.axes, hop.to);
    return value;
  }

  /// One transition, made where its value lives and only once.
  constexpr int move(int value, const AxisList& axes, Placement to) {
    for (const Moved& m : moved_)
      if (m.value == value && m.axes == axes && m.to == to) return m.result;
    const int result = made(value, axes, to);
    moved_.push_back({value, axes, to, result});
    return result;
  }

  /// The element type in which values of this one are added over ranks and iterations.
  constexpr DType adds_in(DType dtype) const { return rounded_sums ? dtype : precise(dtype); }

  /// A value in another element type, made where it lives and only once.
  constexpr int cast(int value, DType dtype) { return casting::cast(*this, value, dtype); }

  /// Completes a statistic that a kernel made of its own part: the sum, or the maximum, over the ranks of some axes.
  constexpr int exchange(int value, const AxisList& axes, bool maximum = false) {
    if (axes.empty()) return value;
    Type type = graph.values[value].type;
    if (const DType adding = adds_in(type.dtype); adding != type.dtype)
      return cast(exchange(cast(value, adding), axes, maximum), type.dtype);
    for (const Axis* a : axes) type.layout = type.layout.with(a, Invariant);
    const int result = emit(operation::move, {value}, {type}, graph.values[value].kind);
    Transition& t = graph.nodes[graph.nodes.size() - 1].transition;
    t.collective = Collective::all_reduce;
    t.axes = axes;
    t.from = Partial;
    t.to = Invariant;
    t.reduction = type.dtype;
    t.maximum = maximum;
    return result;
  }

  /// The current layer's slice of a parameter of its block.
  constexpr int layer_of_parameter(int stack) {
    const Region& here = graph.regions[region];
    if (here.kind != RegionKind::layers || here.count != graph.values[stack].type.layout.dims[0].size)
      graph.misused = graph.values[stack].member;
    return layer_of(stack, region);
  }
  /// The slice that an iteration of a region takes of a stacked value.
  constexpr int layer_of(int stack, int in_region) {
    for (const Stack& s : graph.stacks)
      if (s.outside == stack && s.region == in_region && graph.maker(s.inside).is(Structural::layer)) return s.inside;
    const Value outer = graph.values[stack];
    Type type = outer.type;
    type.layout.dims.count = 0;
    for (int d = 1; d < outer.type.layout.rank(); ++d) type.layout.dims.push_back(outer.type.layout.dims[d]);
    const int here = member;
    member = outer.member;
    const int value = emit(operation::layer, {stack}, {type}, outer.kind, {}, 0, 0, in_region);
    member = here;
    graph.stacks.push_back({in_region, value, stack});
    return value;
  }

  /// Begins a part that runs `count` times. `back_through`: the region whose iterations it goes back through, last
  /// first.
  constexpr int begin(RegionKind kind, int count, int back_through = -1) {
    Region next;
    next.kind = kind;
    next.parent = region;
    next.count = count;
    next.reversed = back_through >= 0;
    region = graph.regions.size();
    next.loop = next.reversed ? graph.regions[back_through].loop : IndexOf<Region>(region);
    next.staged = next.reversed && graph.regions[back_through].staged;
    graph.regions.push_back(next);
    emit(operation::begin_region, {}, {}, Kind::data, {region});
    graph.regions[region].begin = graph.nodes.size() - 1;
    return region;
  }
  /// A value that the region's first iteration takes from outside and every other from the iteration before.
  constexpr int carry(int initial) {
    const Value outer = graph.values[initial];
    const int here = member;
    member = outer.member;
    const int inside = emit(operation::carry, {initial}, {outer.type}, outer.kind);
    member = here;
    graph.carries.push_back({region, initial, inside, -1, -1});
    return inside;
  }
  /// The value itself where it stands in storage of its own that an iteration can leave to another, else a copy of it.
  constexpr int own(int value) {
    const Value& v = graph.values[value];
    const Operation* maker = graph.nodes[v.node].operation;
    bool free = v.region == region && maker->computes && !maker->aliases && !maker->updates;
    for (const Carry& c : graph.carries) free = free && c.returned != value;
    for (const Stack& s : graph.stacks) free = free && s.inside != value;
    if (!free) return emit(operation::copy, {value}, {v.type}, v.kind);
    graph.nodes[v.node].owns = true;
    return value;
  }
  /// Says what an iteration hands on for a carried value.
  constexpr void hand_on(int inside, int returned) {
    for (Carry& c : graph.carries)
      if (c.inside == inside) c.returned = returned;
  }
  /// Ends the region; results of its carries exist from here on.
  constexpr void end() {
    const int ended = region;
    emit(operation::end_region, {}, {}, Kind::data, {ended});
    graph.regions[ended].end = graph.nodes.size() - 1;
    region = graph.regions[ended].parent;
    for (int i = 0; i < graph.carries.size(); ++i) {
      if (graph.carries[i].region != ended) continue;
      const Value returned = graph.values[graph.carries[i].returned];
      const int here = member;
      member = returned.member;
      const int result = emit(operation::carried, {graph.carries[i].returned}, {returned.type}, returned.kind);
      member = here;
      graph.carries[i].result = result;
    }
  }
  constexpr int result_of(int inside) const {
    for (const Carry& c : graph.carries)
      if (c.inside == inside) return c.result;
    return -1;
  }

 private:
  struct Moved {
    int value = 0;
    AxisList axes{};
    Placement to{};
    int result = 0;
  };

  constexpr int made(int value, const AxisList& axes, Placement to) {
    const Value before = graph.values[value];
    const Node maker = graph.nodes[before.node];
    const Placement from = before.type.layout.on(axes[0]);
    // a slice of stacked parameters: the whole stack moves, once for all layers
    if (maker.is(Structural::layer)) {
      const Placement outer = to.split() ? parallel::internals::split(to.dim + 1) : to;
      return layer_of(move(maker.operands[0], axes, outer), before.region);
    }
    if (maker.is(Structural::move) && maker.transition.from.split() && maker.transition.axes == axes &&
        from == Invariant && to == Broadcast && casting::is_parameter(graph, maker.operands[0]))
      // from where a parameter is stored to where it enters is one transition
      return move(maker.operands[0], axes, to);
    const DType adding = adds_in(before.type.dtype);
    if (reduces(collective(from, to)) && adding != before.type.dtype)
      return cast(move(cast(value, adding), axes, to), before.type.dtype);
    const int here = member;
    member = before.member;
    int result = -1;
    if (maker.operation->view && from == Invariant && to == Broadcast) {  // a retype of a view is made on what it views
      const int viewed = move(maker.operands[0], axes, to);
      Type type = before.type;
      for (const Axis* a : axes) type.layout = type.layout.with(a, to);
      result = emit(*maker.operation, {viewed}, {type}, before.kind, maker.ints, 0, 0, before.region);
    } else if (maker.operation->source && (to.split() || to == Broadcast)) {
      Type type = before.type;
      for (const Axis* a : axes) type.layout = type.layout.with(a, to);
      result = emit(*maker.operation, maker.operands, {type}, before.kind, maker.ints, maker.reals[0], maker.reals[1],
                    before.region);
    } else {
      Type type = before.type;
      for (const Axis* a : axes) type.layout = type.layout.with(a, to);
      result = emit(operation::move, {value}, {type}, before.kind, {}, 0, 0, before.region);
      Transition& t = graph.nodes[graph.nodes.size() - 1].transition;
      t.collective = collective(from, to);
      t.axes = axes;
      t.from = from;
      t.to = to;
      t.reduction = type.dtype;
    }
    member = here;
    return result;
  }

  /// Puts a node into the program's order: at the end, or before the outermost open region that lies within the node's
  /// own.
  constexpr void insert(int node, int in_region) {
    if (in_region == region) {
      graph.order.push_back(node);
      return;
    }
    int child = region;
    while (graph.regions[child].parent != in_region) child = graph.regions[child].parent;
    int at = graph.order.size() - 1;
    while (graph.order[at] != graph.regions[child].begin) --at;
    graph.order.insert(at, node);
  }

  Vector<Moved> moved_{};
};

}  // namespace parallel::internals
