// Writes the graph while the user's program runs on symbolic values: nodes, the moves that the derivation asks for,
// regions.
#pragma once
#include <parallel/graph/casting.hpp>
#include <parallel/graph/grouping.hpp>
#include <parallel/graph/infer.hpp>
#include <parallel/graph/storing.hpp>
#include <parallel/graph/sums.hpp>

namespace parallel::internals {

/// A value that is whole on an axis, of which its gradient is split: what ZeRO stores split of a parameter lies so.
struct SplitGradient {
  int value = -1;
  Placed gradient{};
};

/// A stack of parameters, and that from which it has been gathered layer by layer: their gradients are one.
struct GatheredStack {
  int value = -1, rest = -1;
};

class Trace {
 public:
  Graph graph{};
  bool training = true;
  bool loss_scaled = false;  ///< the backward pass begins with the scalar loss_scale
  Sums sums{};
  Phase phase = Phase::forward;
  int origin = -1, member = -1, region = 0;
  Vector<casting::Cast> casts{};
  int draws = 0;              ///< how many random operations there are: each has its own stream
  int block = 0;              ///< which of the layers that one iteration takes is being written
  Vector<StoredOn> stored{};  ///< what is said of all parameters
  Vector<Storing> storing{};  ///< by member, of parameters
  Grouping grouping{};
  Vector<SplitGradient> sharded{};
  Vector<GatheredStack> whole_of{};

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
      value.keep = operation.view && parameters_anew(operands) ? Keep::recomputed : Keep::saved;
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

  /// The first reason holds, as that a member is misused.
  constexpr void refuse(Reason reason, std::int64_t misused = -1) {
    if (graph.unfit != Reason::none || graph.misused >= 0) return;
    graph.unfit = reason;
    graph.misused = static_cast<int>(misused);
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

  /// What makes a member's value stands before all else, as what begins with it may.
  constexpr void stand_first(int value) {
    const int node = graph.values[value].node;
    int at = 0;
    while (graph.order[at] != node) ++at;
    graph.order.erase(at);
    graph.order.insert(0, node);
  }

  /// The number of a random operation, by which it has its stream, and above 32 bits which of an iteration's layers it
  /// is in.
  constexpr std::int64_t draw() { return std::int64_t{block} << 32 | draws++; }

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
    for (const Moved& m : moved_)  // on the host
      if (m.value == graph.scalar_value) graph.values[m.result].type.layout = on_host(layout, true);
    return graph.scalars.size() - 1;
  }

  /// The same of a number that an optimizer reads for a member: its group's, if it is in one. Steps are counted alike.
  constexpr int scalar_of(int of_member, std::string_view name) {
    const MembersCalled* const said = grouping.of(graph.text(graph.members[of_member].path));
    if (said == nullptr || said->group.empty() || name == "step") return scalar(name);
    Text<128> own = said->group.view();
    return scalar(own.append(".").append(name).view());
  }
  /// Makes a value an output of the program.
  constexpr void output(const Name& name, int value) { graph.outputs.push_back({value, name}); }

  /// What nodes come from that are emitted from here on.
  constexpr int from(const Origin& what) {
    graph.origins.push_back(what);
    return origin = graph.origins.size() - 1;
  }

  /// Brings a value to another layout, each hop made once and shared.
  constexpr int enter(int value, const Layout& to) {
    if (graph.values[value].type.layout == to) return value;
    int viewed = value;  // on which a view's retype is made
    while (graph.maker(viewed).operation->view) viewed = graph.maker(viewed).operands[0];
    if (is_sharded(viewed)) {  // so that backward the gradient is split before other axes complete it
      Layout first = to;
      for (const SplitGradient& s : sharded)
        if (s.value == viewed && first.on(s.gradient.axis) == Broadcast) first = first.with(s.gradient.axis, Invariant);
      if (!(first == to)) value = enter(value, first);
    }
    const Layout from = graph.values[value].type.layout;
    for (int d = 0; d < to.rank(); ++d)
      if (!from.dims[d].ordered_as(to.dims[d])) return entered_in_order(value, to, d);
    const Route way = route(from, to);
    if (on_host(from) && on_host(to) && exchanges(from, way))  // ranks exchange what lies on their devices
      return enter(enter(enter(value, on_host(from, false)), on_host(to, false)), to);
    for (const Hop& hop : way.hops) value = move(value, hop.axes, hop.to);
    return value;
  }

  /// A value at a layout in which dimension d, and maybe others, stand in another order. That changes where the
  /// dimension is whole, and after everything else but what splits it has come to where it is to be.
  constexpr int entered_in_order(int value, Layout to, int d) {
    const Layout from = graph.values[value].type.layout;
    Layout whole = to;
    for (const Axis* a : to.dims[d])
      whole = whole.with(a, from.on(a).whole() || from.on(a).pending() ||
                                    (from.on(a).split() && !from.on(a).flat && from.on(a).dim != d)
                                ? from.on(a)
                                : Invariant);
    whole.dims[d] = whole.dims[d].standing_as(from.dims[d]);
    return enter(reorder(enter(value, whole), d, to.dims[d]), to);
  }
  /// The elements of a dimension in another order, made once and shared.
  constexpr int reorder(int value, int d, Dim standing) {  // not by reference: values grow
    for (const Reordered& r : reordered_)
      if (r.value == value && r.dim == d && r.standing.ordered_as(standing)) return r.result;
    const Value before = graph.values[value];
    const int here = member;
    member = before.member;
    Type type = before.type;
    type.layout.dims[d] = type.layout.dims[d].standing_as(standing);
    const int result = emit(operation::reorder, {value}, {type}, before.kind, {d}, 0, 0, before.region);
    member = here;
    reordered_.push_back({value, d, standing, result});
    return result;
  }

  /// Whether a value is a stack of layers, more than vectors, that are not shared out over stages.
  constexpr bool goes_by_layer(int value) const {
    const Layout& layout = graph.values[value].type.layout;
    return graph.values[value].stack > 0 && layout.dims[0].count == 0 && layout.rank() > 2;
  }
  /// A parameter from how it lies split to how it is whole, or its gradient back, where it lives. A stack of matrices
  /// goes layer by layer, so that what brings slices together is a layer's; but not one whose layers lie on several
  /// stages.
  constexpr int gathered(int value, const Layout& to) {
    for_the_step_ = true;
    if (on_host(graph.values[value].type.layout) && !on_host(to))  // by one copy
      value = enter(value, on_host(graph.values[value].type.layout, false));
    const Value from = graph.values[value];
    int result = -1;
    if (from.type.layout == to || !goes_by_layer(value)) {
      result = enter(value, to);
    } else {
      const int here = member, open = region, nodes = graph.order.size();
      member = from.member;
      region = from.region;
      begin(RegionKind::layers, from.stack);
      const int layer = enter(layer_of(value, region), without_leading(to));
      graph.stacks.push_back({region, layer, -1});
      const int stack = graph.stacks.size() - 1;
      end();
      result = emit(operation::stacked, {layer}, {{from.type.dtype, to}}, from.kind);
      graph.stacks[stack].outside = result;
      graph.values[result].stack = from.stack;
      member = here;
      region = open;
      before_open_regions(nodes, from.region);
    }
    for_the_step_ = false;
    return result;
  }
  /// The same for all micro-batches of a step. The gradient of what is whole lies as the parameter does at rest.
  constexpr int gather_for_the_step(int value, const Layout& to) {
    const int result = gathered(value, to);
    const auto shard_as_rest = [&](int whole) {
      shard(whole, graph.values[value].type.layout);
      if (storing_of(value)->reduces_at_once() && on_host(graph.values[value].type.layout))
        sharded.push_back({whole, {&axes::host, OnHost}});
    };
    if (graph.maker(result).is(Structural::stacked)) {
      whole_of.push_back({result, value});
      shard_as_rest(result);
    } else {
      for (int v = result; v != value; v = graph.maker(v).operands[0]) shard_as_rest(v);
    }
    return result;
  }
  /// The gradient of a whole parameter lies as its optimizer's states do.
  constexpr void shard(int value, const Layout& states) {
    for (const Placed& p : placements_apart(states))
      if (graph.values[value].type.layout.on(p.axis) == Invariant) sharded.push_back({value, p});
  }

  /// One transition, made where its value lives and only once.
  constexpr int move(int value, const AxisList& axes, Placement to) {
    for (const Moved& m : moved_)
      if (m.value == value && m.axes == axes && m.to == to) return m.result;
    const int result = made(value, axes, to);
    moved_.push_back({value, axes, to, result});
    return result;
  }

  /// Every axis that some value of the program names, sorted by name; looked for once, when the optimizer is written.
  constexpr const AxisList& axes() {
    if (axes_.empty()) {
      for (const Value& v : graph.values) v.type.layout.collect(axes_);
      routing::sort_by_name(axes_);
    }
    return axes_;
  }

  /// How a value's gradient lies.
  constexpr Layout gradient_layout(int value) const {
    Layout layout = conjugate(graph.values[value].type.layout);
    for (const SplitGradient& s : sharded)
      if (s.value == value) layout = layout.with(s.gradient.axis, s.gradient.placement);
    return layout;
  }
  /// A value's gradient lies as that of another does of which it is made; `dims` dimensions more in front. Where it is
  /// used differently on an axis, its gradient is split by that one first, and by those within it later; where a move
  /// is what differs, a sum stays pending until that has been gone back through.
  constexpr void shard_like(int value, int other, int dims = 0) {
    List<Placed, max_axes> outer;
    for (int i = 0; i < sharded.size(); ++i) {  // of a value the outermost come first
      const SplitGradient s = sharded[i];
      if (s.value != other) continue;
      const Placement as_used = graph.values[value].type.layout.on(s.gradient.axis);
      bool within = false;
      for (const Placed& p : outer) within = within || is_within(s.gradient.placement, p.placement);
      if (!(as_used == Invariant))
        outer.push_back(s.gradient);
      else if (!within && !(dims == 0 && moves_out(value, other, s.gradient.placement)))
        sharded.push_back({value, {s.gradient.axis, behind(s.gradient.placement, dims)}});
      else if (!within && !(s.gradient.placement == OnHost))
        sharded.push_back({value, {s.gradient.axis, Partial}});
    }
  }
  /// Whether of two splits the later one splits what the other leaves. The host takes what all leave.
  static constexpr bool is_within(const Placement& later, const Placement& outer) {
    return later == OnHost || later.flat || (later.split() && outer.split() && !outer.flat && later.dim == outer.dim);
  }
  /// Whether two values of one shape lie otherwise in what a split of the second is within.
  constexpr bool moves_out(int value, int other, const Placement& split) const {
    const Layout &now = graph.values[value].type.layout, &rest = graph.values[other].type.layout;
    for (const Layout* of : {&now, &rest})
      for (const Dim& d : of->dims)
        for (const Axis* a : d)
          if (!(now.on(a) == rest.on(a)) && is_within(split, of->on(a))) return true;
    return false;
  }
  constexpr bool is_sharded(int value) const {
    for (const SplitGradient& s : sharded)
      if (s.value == value) return true;
    return false;
  }

  /// The element types in which values of this one are added over ranks and iterations; gradients of parameters over
  /// ranks; and these over iterations.
  constexpr DType adds_in(DType dtype) const { return is_half(dtype) ? sums.activations : dtype; }
  constexpr DType reduces_in(DType dtype) const { return dtype == DType::f64 ? dtype : sums.reduced; }
  constexpr DType accumulates_in(DType dtype) const { return dtype == DType::f64 ? dtype : sums.accumulated; }

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
    if (here.kind != RegionKind::layers || here.count * here.blocks != graph.values[stack].type.layout.dims[0].size)
      graph.misused = graph.values[stack].member;
    return layer_of(stack, region, block);
  }
  /// The slice that an iteration of a region takes of a stacked value, for one of its layers.
  constexpr int layer_of(int stack, int in_region, int of_block = 0) {
    for (const Stack& s : graph.stacks)
      if (s.outside == stack && s.region == in_region && graph.maker(s.inside).is(Structural::layer) &&
          graph.maker(s.inside).ints[0] == of_block)
        return s.inside;
    const Value outer = graph.values[stack];
    const Type type{outer.type.dtype, without_leading(outer.type.layout)};
    const int here = member;
    member = outer.member;
    const int value = emit(operation::layer, {stack}, {type}, outer.kind, {of_block}, 0, 0, in_region);
    member = here;
    graph.stacks.push_back({in_region, value, stack});
    shard_like(value, stack, -1);
    return value;
  }

  /// Begins a part that runs `count` times. `back_through`: the region whose iterations it goes back through, last
  /// first.
  constexpr int begin(RegionKind kind, int count, int back_through = -1) {
    Region next;
    next.kind = kind;
    next.parent = region;
    next.count = count;
    next.blocks = back_through >= 0 ? graph.regions[back_through].blocks : 1;
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
  /// The axes whose ranks have not all the same of a layout, the outer ones of a dimension first.
  static constexpr List<Placed, max_axes> placements_apart(const Layout& layout) {
    List<Placed, max_axes> all;
    AxisList axes;
    layout.collect(axes);
    for (const Axis* a : axes)
      if (layout.on(a).apart()) all.push_back({a, layout.on(a)});
    return all;
  }
  /// Whether ranks send each other anything on a route.
  static constexpr bool exchanges(Layout now, const Route& way) {
    bool any = false;
    for (const Hop& hop : way.hops) {
      any = any || communicates(collective(now.on(hop.axes[0]), hop.to));
      for (const Axis* a : hop.axes) now = now.with(a, hop.to);
    }
    return any;
  }
  struct Moved {
    int value = 0;
    AxisList axes{};
    Placement to{};
    int result = 0;
  };

  constexpr const Storing* storing_of(int value) const {
    const Value& v = graph.values[value];
    return v.kind == Kind::parameter && v.member >= 0 && v.member < storing.size() ? &storing[v.member] : nullptr;
  }
  /// The open loop over micro-batches, or -1.
  constexpr int micro_batches() const {
    int r = region;
    while (r >= 0 && graph.regions[r].kind != RegionKind::micro_batches) r = graph.regions[r].parent;
    return r;
  }
  /// Whether a parameter is shared out by ranks, each micro-batch's gradient as soon as it is there, but not on this
  /// axis: what a move on it completes is as large as its terms, and micro-batches add these up before.
  constexpr bool adds_up(int value, const Axis* axis) const {
    const Storing* const s = storing_of(value);
    return s != nullptr && s->reduces_at_once() && s->shared_out() && micro_batches() >= 0 && !graph.stashed &&
           gradient_layout(value).on(axis) == Invariant;
  }
  /// Whether each micro-batch, and layer, makes a move of a parameter on an axis.
  constexpr bool moves_at_once(int value, const Axis* axis) const {
    const Storing* const s = storing_of(value);
    return s != nullptr && s->reduces_at_once() && !adds_up(value, axis);
  }
  /// Whether a layer's slice of a parameter moves in the loop, so that its gradient is reduced while others are
  /// computed. Else all layers move at once: where micro-batches add up gradients, and vectors, which are small.
  constexpr bool moves_by_layer(int value, const Axis* axis) const {
    const Storing* const s = storing_of(value);
    return moves_at_once(value, axis) || (s != nullptr && micro_batches() < 0 && s->whole.rank() > 1);
  }
  /// The region in which a move of a value stands: its own, or the loop over micro-batches of what each of them moves.
  constexpr int moves_in(int value, const Axis* axis) const {
    const int own = graph.values[value].region, loop = micro_batches();
    return loop < 0 || for_the_step_ || own != graph.regions[loop].parent || !moves_at_once(value, axis) ? own : loop;
  }

  constexpr int made(int value, const AxisList& axes, Placement to) {
    const Value before = graph.values[value];
    const Node maker = graph.nodes[before.node];
    const Placement from = before.type.layout.on(axes[0]);
    // a slice of stacked parameters: the whole stack moves, once for all layers
    if (maker.is(Structural::layer) && !for_the_step_ && !moves_by_layer(value, axes[0]))
      return layer_of(move(maker.operands[0], axes, behind(to, 1)), before.region, static_cast<int>(maker.ints[0]));
    const bool from_host = maker.transition.from == OnHost && adds_up(value, axes[0]);
    if (maker.is(Structural::move) && (maker.transition.from.apart() || from_host) && from == Invariant &&
        to == Broadcast && !is_sharded(value) && lies_at_rest(maker.operands[0])) {
      // from where a parameter is stored to where it enters is one transition on each axis; the part of a rank enters
      // on the others first, so its gradient is scattered before replicas add it up
      const int below = move(maker.operands[0], axes, to);
      const int entered =
          maker.transition.axes == axes ? below : move(below, maker.transition.axes, maker.transition.to);
      graph.values[entered].keep = before.keep;
      return entered;
    }
    // backward only gradients of parameters are brought to another layout
    const DType adding = phase == Phase::backward ? reduces_in(before.type.dtype) : adds_in(before.type.dtype);
    if (reduces(collective(from, to)) && adding != before.type.dtype)
      return cast(move(cast(value, adding), axes, to), before.type.dtype);
    const int here = member;
    member = before.member;
    int result = -1;
    if (maker.is(Structural::move) && maker.transition.to == Broadcast && maker.transition.from == Invariant &&
        from == Invariant && to == Broadcast && splits_within(maker.operands[0], axes[0], maker.transition.axes[0])) {
      // backward the outer split comes first
      result = move(move(maker.operands[0], axes, to), maker.transition.axes, Broadcast);
      member = here;
      return result;
    }
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
      result = emit(operation::move, {value}, {type}, before.kind, {}, 0, 0, moves_in(value, axes[0]));
      Transition& t = graph.nodes[graph.nodes.size() - 1].transition;
      t.collective = collective(from, to);
      t.axes = axes;
      t.from = from;
      t.to = to;
      t.reduction = type.dtype;
    }
    shard_like(result, value);
    if (collective(from, to) == Collective::retype && parameters_anew({value}))
      graph.values[result].keep = Keep::recomputed;
    member = here;
    return result;
  }

  /// Whether a value is a parameter as it is stored, or a layer of one, or as that enters on some axes.
  constexpr bool lies_at_rest(int value) const {
    while (!casting::is_parameter(graph, value)) {
      const Node& maker = graph.maker(value);
      if (!maker.is(Structural::layer) && !(maker.is(Structural::move) && maker.transition.to.whole())) return false;
      value = maker.operands[0];
    }
    return true;
  }
  /// Whether a parameter is among these that the backward pass gathers again.
  constexpr bool parameters_anew(const List<int, max_node_operands>& operands) const {
    for (const int o : operands)
      if (graph.values[o].kind == Kind::parameter && graph.values[o].keep == Keep::recomputed) return true;
    return false;
  }
  /// Whether a value's gradient is split by one axis within what another leaves.
  constexpr bool splits_within(int value, const Axis* axis, const Axis* outer) const {
    int split = -1, split_outer = -1;
    for (int i = 0; i < sharded.size(); ++i)
      if (sharded[i].value == value) {
        if (sharded[i].gradient.axis == axis) split = i;
        if (sharded[i].gradient.axis == outer) split_outer = i;
      }
    return split_outer >= 0 && split > split_outer &&
           is_within(sharded[split].gradient.placement, sharded[split_outer].gradient.placement);
  }
  /// Puts a node into the program's order: at the end, or before the outermost open region that lies within the node's
  /// own.
  constexpr void insert(int node, int in_region) {
    if (in_region == region) {
      graph.order.push_back(node);
      return;
    }
    graph.order.insert(begin_of_open(in_region), node);
  }
  /// Where in the order the outermost open region within another one begins.
  constexpr int begin_of_open(int in_region) const {
    int child = region;
    while (graph.regions[child].parent != in_region) child = graph.regions[child].parent;
    int at = graph.order.size() - 1;
    while (graph.order[at] != graph.regions[child].begin) --at;
    return at;
  }
  /// What has been written from a place of the order on stands before it.
  constexpr void before_open_regions(int from, int in_region) {
    if (region == in_region) return;
    int at = begin_of_open(in_region);
    for (int i = from; i < graph.order.size(); ++i) {
      const int node = graph.order[i];
      graph.order.erase(i);
      graph.order.insert(at++, node);
    }
  }

  struct Reordered {
    int value = 0, dim = 0;
    Dim standing{};
    int result = 0;
  };

  Vector<Moved> moved_{};
  Vector<Reordered> reordered_{};
  AxisList axes_{};
  bool for_the_step_ = false;
};

}  // namespace parallel::internals
