// Reverse-mode differentiation of a graph: every node's gradient in reverse order, every transition's conjugate, every
// loop backwards.
#pragma once
#include <parallel/graph/stages.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/update.hpp>

namespace parallel::internals {

/// Gradients are written into the trace that holds the forward program; `of(value)` finds them afterwards.
class Differentiation {
 public:
  constexpr explicit Differentiation(Trace& trace) : trace_(trace) {}

  /// Goes back from a value and its gradient through the nodes of `program`. Where the trace has an open region of
  /// micro-batches, gradients of what lies outside it add up over its iterations, still pending; `before_leaving()` may
  /// write more into that region, behind the backward pass.
  constexpr void run(const Vector<IndexOf<Node>>& program, int value, int gradient, auto before_leaving) {
    trace_.phase = Phase::backward;
    const int region = trace_.region;
    Frame frame{region, nullptr};
    frame_ = &frame;
    add(value, gradient);
    int first = 0;
    if (region != 0)
      while (program[first] != trace_.graph.regions[region].begin) ++first;
    sweep(program, first, program.size());
    if (region != 0) {
      before_leaving();
      trace_.phase = Phase::backward;
      Frame outside{0, nullptr};
      leave(frame, outside, Vector<Slice>(slices_));
      sweep(program, 0, first);
    }
    trace_.member = -1;
  }
  constexpr void run(const Vector<IndexOf<Node>>& program, int value, int gradient) {
    run(program, value, gradient, [] {});
  }
  /// Seeds a scalar with `seed` (1, or one over the number of micro-batches), times the scale of the loss where there
  /// is one, and goes back through everything that stands in the trace.
  constexpr void run(int loss, double seed, auto before_leaving) {
    const Vector<IndexOf<Node>> program = trace_.graph.order;
    trace_.phase = Phase::backward;
    trace_.member = trace_.graph.values[loss].member;
    const Type type = conjugate(trace_.graph.values[loss].type);
    int gradient = trace_.emit(operation::constant, {}, {type}, Kind::constant, {}, seed);
    if (trace_.loss_scaled) {
      const std::int64_t scale = trace_.scalar("loss_scale");
      gradient = trace_.emit(operation::scaled, {gradient, trace_.graph.scalar_value}, {type}, Kind::data, {scale, 0});
    }
    run(program, loss, gradient, before_leaving);
  }
  constexpr void run(int loss, double seed) {
    run(loss, seed, [] {});
  }

  /// The gradient of a value, or -1 where none reaches it.
  constexpr int of(int value) const { return value < cotangents_.size() ? cotangents_[value] : -1; }

 private:
  /// Gradients, within one loop, of values outside it.
  struct Captured {
    int value = 0, sum = 0;
    int carried = -1;  ///< the carry in which the layers' gradients already add up, layer by layer
  };
  /// A value's gradient that the conjugate of a move completed: of what, over which axes.
  struct Completed {
    int value = 0, sum = 0, terms = 0;
    AxisList axes{};
  };
  struct Frame {
    int region = 0;  ///< the forward region that is gone back through
    Frame* outer = nullptr;
    Vector<Captured> captured{};
  };
  struct Slice {
    int stack = 0, inside = 0;
    int block = 0;  ///< of the layers that an iteration takes
  };

  constexpr int& slot(Frame& frame, int value) {
    if (trace_.graph.inside(trace_.graph.values[value].region, frame.region)) {
      cotangents_.resize(cotangents_.size() > value ? cotangents_.size() : value + 1, -1);
      return cotangents_[value];
    }
    for (Captured& c : frame.captured)
      if (c.value == value) return c.sum;
    frame.captured.push_back({value, -1});
    return frame.captured.back().sum;
  }
  /// A gradient may be more precise than its value, where it has been added up, or less, where the value is half of a
  /// float made precise to be added up. Of what is used on the device gradients are added there, until one is on the
  /// host.
  constexpr void add(int value, int gradient) {
    int before = slot(*frame_, value);
    const auto lies_on_host = [&](int v) { return v >= 0 && on_host(trace_.graph.values[v].type.layout); };
    const bool host = lies_on_host(value) || lies_on_host(gradient) || lies_on_host(before);
    const Layout layout = on_host(trace_.gradient_layout(value), host);
    if (trace_.is_sharded(value) && !(trace_.graph.values[gradient].type.layout == layout)) {
      if (trace_.sums.keeps_gradients()) gradient = trace_.cast(gradient, trace_.reduces_in(dtype(gradient)));
      gradient = trace_.enter(gradient, layout);
    }
    int sum = gradient;
    if (before >= 0) {
      if (trace_.is_sharded(value)) before = trace_.enter(before, layout);
      const DType one = dtype(before), other = dtype(gradient), both = one == other ? one : precise(one);
      sum = trace_.emit(operation::add, {trace_.cast(before, both), trace_.cast(gradient, both)}, {{both, layout}},
                        Kind::activation);
    }
    slot(*frame_, value) = sum;
  }
  /// A gradient where one iteration has added it up, as it leaves that.
  constexpr int leaving(int value, int gradient) {
    return trace_.is_sharded(value) ? trace_.enter(gradient, trace_.gradient_layout(value)) : gradient;
  }
  constexpr DType dtype(int value) const { return trace_.graph.values[value].type.dtype; }
  constexpr Type gradient_type(int value, DType dtype) const { return {dtype, trace_.gradient_layout(value)}; }
  /// The element type in which a value's gradient adds up over iterations.
  constexpr DType accumulates_in(int value) const {
    return trace_.graph.values[value].kind == Kind::parameter ? trace_.accumulates_in(dtype(value))
                                                              : trace_.adds_in(dtype(value));
  }
  constexpr int zeros_outside(const Type& type, int region) {
    return trace_.emit(operation::constant, {}, {type}, Kind::constant, {}, 0, 0, region);
  }

  constexpr void sweep(const Vector<IndexOf<Node>>& program, int first, int last) {
    for (int i = last - 1; i >= first; --i) {
      const Node node = trace_.graph.nodes[program[i]];
      if (node.is(Structural::end_region)) {
        int begin = i;
        while (program[begin] != trace_.graph.regions[static_cast<int>(node.ints[0])].begin) --begin;
        back_through(static_cast<int>(node.ints[0]), program, begin, i);
        i = begin;
      } else {
        go_back(node);
      }
    }
  }

  constexpr void go_back(const Node& node) {
    List<int, max_results> from;
    bool any = false;
    for (int r = 0; r < node.results; ++r) {
      const int g = of(node.result + r);
      from.push_back(g);
      any = any || g >= 0;
    }
    if (!any) return;
    trace_.origin = node.origin;
    trace_.member = node.member;
    if (node.operation == &operation::cast) {
      const int o = node.operands[0];
      const bool kept = trace_.sums.keeps_gradients() && trace_.graph.values[o].kind == Kind::parameter;
      if (trace_.graph.values[o].differentiable) add(o, kept ? from[0] : trace_.cast(from[0], dtype(o)));
    } else if (node.operation == &operation::reorder) {
      const int o = node.operands[0], d = static_cast<int>(node.ints[0]);
      if (!trace_.graph.values[o].differentiable) return;
      const int gradient = trace_.reorder(from[0], d, trace_.graph.values[o].type.layout.dims[d]);
      add(o, trace_.enter(gradient, trace_.gradient_layout(o)));
    } else if (node.is(Structural::rounded)) {
      add(node.operands[1], from[0]);
    } else if (node.is(Structural::move)) {
      // an edge sends back also where its first stage wants nothing
      const bool wanted = trace_.graph.values[node.operands[0]].differentiable;
      if (!wanted && node.transition.along == 0) return;
      const int gradient = conjugate_move(node, from[0]);
      if (wanted) add(node.operands[0], gradient);
    } else if (node.is(Structural::stacked)) {
      for (const GatheredStack& w : trace_.whole_of)
        if (w.value == node.result) add(w.rest, trace_.enter(from[0], trace_.gradient_layout(w.rest)));
    } else if (node.is(Structural::layer)) {
      slices_.push_back({node.operands[0], leaving(node.result, from[0]), static_cast<int>(node.ints[0])});
    } else if (node.is(Structural::copy) || node.is(Structural::stash)) {
      add(node.operands[0], from[0]);
    } else if (node.operation->gradient != nullptr) {
      for (int r = 0; r < node.results; ++r)
        if (from[r] >= 0) from[r] = trace_.cast(from[r], dtype(node.result + r));
      Gradient gradient{{trace_}, node, from, {}};
      gradient.given.count = node.operands.size();
      for (int& g : gradient.given) g = -1;
      node.operation->gradient(gradient);
      bool gives = node.operation->gradient == &operation::no_gradient || from[0] < 0 ||
                   !trace_.graph.values[node.result].differentiable;
      for (int o = 0; o < node.operands.size(); ++o) {
        gives = gives || gradient.given[o] >= 0;
        if (gradient.given[o] >= 0) add(node.operands[o], gradient.given[o]);
      }
      if (!gives) gradient.refuse(Reason::no_gradient);
    } else if (node.is(Structural::none)) {
      for (const int o : node.operands)
        if (trace_.graph.values[o].differentiable) trace_.refuse(Reason::no_gradient);
    }
  }

  /// The conjugate of a -> b is gradient(b) -> gradient(a), charged to the same member and line.
  constexpr int conjugate_move(const Node& node, int gradient) {
    Transition t = node.transition;
    t.from = conjugate(node.transition.to);
    t.to = conjugate(node.transition.from);
    if ((trace_.is_sharded(node.operands[0]) || trace_.is_sharded(node.result)) &&
        !staging::on_stages(trace_.graph, node)) {
      Layout to = trace_.gradient_layout(node.operands[0]);
      const Layout& layout = trace_.graph.values[gradient].type.layout;
      if (!copies(t.collective)) to = on_host(to, on_host(layout));
      t.to = to.on(t.axes[0]);
      if (t.to.flat && t.from.split() && !t.from.flat)
        t.to = Invariant;  // no part of a dimension is one of a flat view
      // the value was gathered, this never whole; or its sum is completed later
      if (layout == to || layout.on(t.axes[0]) == t.to) return gradient;
    }
    if (t.along != 0)
      staging::turn(t);
    else
      t.collective = collective(t.from, t.to);
    const DType travelling = travels(t, node.operands[0], gradient);
    t.reduction = travelling;
    if (const Completed* before = completed(t, node.result, gradient)) {  // over all axes at once
      for (const Axis* a : before->axes) t.axes.push_back(a);
      routing::sort_by_name(t.axes);
      gradient = before->terms;
    }
    const int result = moved_back(node, gradient, t, travelling);
    if (completes(t)) completed_.push_back({node.operands[0], result, gradient, t.axes});
    return result;
  }
  /// A gradient behind the conjugate of a move.
  constexpr int moved_back(const Node& node, int gradient, const Transition& t, DType travelling) {
    const Layout lies = trace_.gradient_layout(node.operands[0]);
    if ((trace_.is_sharded(node.operands[0]) || on_host(lies)) && trace_.region == 0 && reduces(t.collective) &&
        trace_.goes_by_layer(gradient))
      return trace_.gathered(trace_.cast(gradient, travelling), lies);
    // of what is split by several axes, those within follow where it is added
    Layout moved = lies;
    if (trace_.is_sharded(node.operands[0]) && t.along == 0) {
      moved = trace_.graph.values[gradient].type.layout;
      // on which stages a gradient is, its home says, and a move of its own adds it up over them
      if (!staging::on_stages(trace_.graph, node))
        for (const Axis* a : t.axes) moved = moved.with(a, t.to);
    }
    const bool by_host = on_host(moved) && !copies(t.collective) && communicates(t.collective);
    if (by_host) {  // ranks exchange what lies on their devices
      gradient = trace_.enter(gradient, on_host(trace_.graph.values[gradient].type.layout, false));
      moved = on_host(moved, false);
    }
    const int result =
        trace_.emit(operation::move, {trace_.cast(gradient, travelling)}, {{travelling, moved}}, Kind::activation);
    trace_.graph.nodes[trace_.graph.nodes.size() - 1].transition = t;
    trace_.graph.values[result].home = trace_.graph.values[node.operands[0]].home;
    return by_host ? trace_.enter(result, on_host(moved, true)) : result;
  }
  /// How one move completed the sum that is a value's gradient, in the region that is being written, and is read by
  /// nothing but a transition that completes it, too; else null.
  constexpr const Completed* completed(const Transition& t, int value, int gradient) const {
    for (const Completed& c : completed_)
      if (completes(t) && c.value == value && c.sum == gradient &&
          trace_.graph.values[gradient].region == trace_.region)
        return &c;
    return nullptr;
  }

  /// Whether a move completes a sum that then is Invariant.
  static constexpr bool completes(const Transition& t) {
    return t.collective == Collective::all_reduce && t.from == Partial && t.to == Invariant && t.along == 0 &&
           t.among.kind != PlacementKind::at && !t.maximum;
  }

  /// The element type in which a value's gradient travels: where it is added the more precise one, else that in which
  /// the value was computed; of what is made of parameters alone it stays as it is.
  constexpr DType travels(const Transition& t, int value, int gradient) const {
    const Value& v = trace_.graph.values[value];
    const Node& maker = trace_.graph.nodes[v.node];
    if (reduces(t.collective))
      return v.kind == Kind::parameter ? trace_.reduces_in(v.type.dtype) : trace_.adds_in(v.type.dtype);
    if (v.kind == Kind::parameter) return dtype(gradient);
    return maker.operation == &operation::cast && precise(dtype(maker.operands[0])) == v.type.dtype
               ? dtype(maker.operands[0])
               : v.type.dtype;
  }

  /// Goes back through the iterations of a loop, the last first.
  constexpr void back_through(int region, const Vector<IndexOf<Node>>& program, int begin, int end) {
    Graph& graph = trace_.graph;
    Vector<Carry> carried;
    bool any = false;
    for (const Carry& c : graph.carries)
      if (c.region == region && graph.values[c.inside].differentiable) {
        any = any || of(c.result) >= 0;
        carried.push_back(c);
      }
    Vector<Slice> given;  // gradients of what steps gave, in whose stack each finds its own
    if (graph.regions[region].kind == RegionKind::steps)
      for (const Stack& s : graph.stacks)
        if (const Node& maker = graph.maker(s.outside); s.region == region && maker.is(Structural::stacked))
          if (const int known = of(s.outside); known >= 0)
            given.push_back({trace_.cast(known, dtype(s.outside)), s.inside, position(maker, s.inside)});
    any = any || !given.empty();
    if (!any) return;
    Frame frame{region, frame_};
    Frame& outer = *frame_;
    trace_.origin = graph.nodes[graph.regions[region].begin].origin;
    List<int, 8> gradients;  // of what each carry hands on, as the backward loop carries it
    const RegionKind kind = graph.regions[region].kind;
    Vector<int> initial;
    for (const Carry& c : carried) {
      const int known = of(c.result);
      initial.push_back(known >= 0 ? trace_.cast(known, dtype(c.result))
                                   : zeros_outside(conjugate(graph.values[c.result].type), trace_.region));
    }
    trace_.begin(kind, graph.regions[region].count, region);
    frame_ = &frame;
    for (int c = 0; c < carried.size(); ++c) {
      gradients.push_back(trace_.carry(initial[c]));
      add(carried[c].returned, gradients[c]);
    }
    for (const Slice& s : given) add(s.inside, trace_.layer_of(s.stack, trace_.region, s.block));
    const Vector<Slice> before = slices_;
    slices_.clear();
    sweep(program, begin, end);
    for (int c = 0; c < carried.size(); ++c) {
      int g = of(carried[c].inside);
      if (g < 0)
        g = trace_.emit(operation::constant, {}, {conjugate(graph.values[carried[c].inside].type)}, Kind::constant);
      trace_.hand_on(gradients[c], trace_.own(trace_.cast(g, dtype(carried[c].inside))));
    }
    const Vector<Slice> slices = slices_;
    slices_ = before;
    leave(frame, outer, slices);
    for (int c = 0; c < carried.size(); ++c)
      if (graph.values[carried[c].initial].differentiable) add(carried[c].initial, trace_.result_of(gradients[c]));
  }

  /// Which operand of a node a value is.
  static constexpr int position(const Node& node, int value) {
    int at = 0;
    while (node.operands[at] != value) ++at;
    return at;
  }

  /// Ends the region that is being written: its slices become stacks, and gradients of values outside add up over its
  /// iterations.
  constexpr void leave(Frame& frame, Frame& outer, const Vector<Slice>& slices) {
    Graph& graph = trace_.graph;
    trace_.origin = -1;  // sums over iterations are nobody's operation
    Vector<Slice> sums;
    const int region = trace_.region, parent = graph.regions[region].parent;
    for (const Captured& c : frame.captured) {
      if (c.carried >= 0) sums.push_back({c.value, c.carried});
      if (c.sum < 0) continue;
      trace_.member = graph.values[c.value].member;
      if (c.carried >= 0) {
        const int before = returned_for(c.carried);
        trace_.hand_on(c.carried, trace_.emit(operation::accumulate, {before, c.sum}, {graph.values[before].type},
                                              Kind::activation));
        continue;
      }
      Type type = gradient_type(c.value, accumulates_in(c.value));
      if (goes_back(graph.regions[region].kind))
        type.layout = on_host(type.layout, on_host(graph.values[c.value].type.layout));
      int initial = slot(outer, c.value);
      initial = initial < 0 ? zeros_outside(type, parent) : trace_.cast(initial, type.dtype);
      const int inside = trace_.carry(trace_.enter(initial, type.layout)), term = trace_.enter(c.sum, type.layout);
      trace_.hand_on(inside, trace_.emit(operation::accumulate, {inside, term}, {type}, Kind::activation));
      sums.push_back({c.value, inside});
    }
    struct Filled {
      int stack = 0;
      List<int, max_node_operands> layers{};  ///< of one iteration, in their order
      int first = 0;                          ///< of their stacks in the graph
    };
    Vector<Filled> stacks;
    for (const Slice& s : slices) {
      bool known = false;
      for (const Filled& other : stacks) known = known || other.stack == s.stack;
      if (known) continue;
      trace_.member = graph.values[s.stack].member;
      Filled filled{s.stack, {}, -1};
      const int carried = adds_up_by_layer(s, outer) ? carry_outside(s.stack, outer) : -1;
      for (int block = 0; block < graph.regions[region].blocks; ++block)
        for (const Slice& layer : slices)
          if (layer.stack == s.stack && layer.block == block)
            filled.layers.push_back(carried < 0 ? trace_.own(layer.inside) : add_to_layer_of(carried, layer));
      filled.first = graph.stacks.size();
      for (const int layer : filled.layers) graph.stacks.push_back({region, layer, -1});
      stacks.push_back(filled);
    }
    trace_.end();
    frame_ = &outer;
    for (const Slice& s : sums) slot(outer, s.stack) = trace_.result_of(s.inside);
    for (const Filled& s : stacks) {
      const int inside = s.layers[0];
      trace_.member = graph.values[s.stack].member;
      const int stack =
          trace_.emit(operation::stacked, s.layers, {gradient_type(s.stack, dtype(inside))}, Kind::activation);
      for (int i = 0; i < s.layers.size(); ++i) graph.stacks[s.first + i].outside = stack;
      graph.values[stack].stack = graph.values[s.stack].stack;
      if (const int carried = carried_of(inside); carried >= 0)
        trace_.hand_on(carried, stack);
      else
        add(s.stack, stack);
    }
  }

  /// Whether layers' gradients, each as soon as it is there, are added to those of the micro-batches before: what lies
  /// outside that loop is a stack, and no gradient of it is known yet. One that is under way is left to travel; and a
  /// stage's are added behind the loop, when its neighbour has been sent what it waits for.
  constexpr bool adds_up_by_layer(const Slice& s, Frame& outer) {
    const Graph& graph = trace_.graph;
    if (outer.region == 0 || graph.regions[trace_.region].staged ||
        graph.regions[outer.region].kind != RegionKind::micro_batches ||
        graph.inside(graph.values[s.stack].region, outer.region) ||
        communicates(graph.maker(s.inside).transition.collective))
      return false;
    for (const Captured& c : outer.captured)
      if (c.value == s.stack && (c.sum >= 0 || c.carried >= 0)) return false;
    return true;
  }
  constexpr int add_to_layer_of(int carried, const Slice& s) {
    const int layer = trace_.layer_of(carried, trace_.region, s.block);
    return trace_.emit(operation::accumulate, {layer, s.inside}, {trace_.graph.values[layer].type}, Kind::activation);
  }
  /// The carry of the loop outside in which a stack's gradient adds up.
  constexpr int carry_outside(int stack, Frame& outer) {
    Graph& graph = trace_.graph;
    const int loop = graph.regions[trace_.region].parent;
    const Type type = gradient_type(stack, accumulates_in(stack));
    const int initial = zeros_outside(type, graph.regions[loop].parent);
    const int carried = trace_.emit(operation::carry, {initial}, {type}, Kind::activation, {}, 0, 0, loop);
    graph.values[carried].stack = graph.values[stack].stack;
    graph.carries.push_back({loop, initial, carried, -1, -1});
    static_cast<void>(slot(outer, stack));
    for (Captured& c : outer.captured)
      if (c.value == stack) c.carried = carried;
    return carried;
  }
  /// In which carry a layer's gradient has been added up, or -1.
  constexpr int carried_of(int sum) const {
    const Graph& graph = trace_.graph;
    if (graph.maker(sum).operation != &operation::accumulate) return -1;
    const Node& slice = graph.maker(graph.maker(sum).operands[0]);
    return slice.is(Structural::layer) && graph.maker(slice.operands[0]).is(Structural::carry) ? int{slice.operands[0]}
                                                                                               : -1;
  }
  constexpr int returned_for(int carried) const {
    for (const Carry& c : trace_.graph.carries)
      if (c.inside == carried) return c.returned;
    return -1;
  }

  Trace& trace_;
  Frame* frame_ = nullptr;
  Vector<int> cotangents_{};
  Vector<Slice> slices_{};
  Vector<Completed> completed_{};
};

}  // namespace parallel::internals
