// What the passes rely on of a graph that comes from a file and not from this library's own trace.
#pragma once
#include <stdexcept>

#include <parallel/plan/derive.hpp>

namespace parallel::internals::object {

/// Words that are no program of this library: truncated, damaged, or made by another version.
struct Damaged : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// larger graphs are refused: passes take time in their square
inline constexpr int most_nodes = 8'000, most_values = 32'000, most_chunks = 64;
inline constexpr int most_iterations = 32'000;  ///< of a loop over layers or micro-batches
inline constexpr int most_of_name = 65'535;     ///< characters: longer names are refused, also of types and files

inline void require(bool sound, const char* what) {
  if (!sound) throw Damaged(what);
}

inline void check_iterations(int n, int least) {
  require(n <= most_iterations, "it has more than 32,000 layers, or micro-batches");
  require(n >= least, "a number is out of range");
}
inline void check_placement(const Placement& p) {
  require(p.dim >= -1 && p.dim <= max_rank, "a number is out of range");
  require(!p.flat || (p.split() && p.dim >= 0), "a split of a flat view is none");
  require(!p.alone || (p.flat && p.dim == 0), "a split of a flat view is none");
}
inline void check_type(const Type& type) {
  AxisList named;
  const auto once = [&](const Axis* a) {
    require(a != nullptr && !named.contains(a) && named.size() < max_axes, "an axis is named twice in a tensor");
    named.push_back(a);
  };
  for (const Dim& d : type.layout.dims) {
    require(d.size >= 1 && d.size <= std::int64_t{1} << 44, "a dimension is out of range");
    require((d.order == Order::contiguous) != d.ordered(), "a dimension stands in an order for no axis");
    for (const Axis* a : d) once(a);
  }
  int flat = -1;
  bool alone = false;
  for (const Placed& p : type.layout.others) {
    once(p.axis);
    check_placement(p.placement);
    if (!p.placement.flat) continue;
    require(p.placement.dim + (p.placement.alone ? 1 : 0) <= type.layout.rank() &&
                (flat < 0 || (flat == p.placement.dim && alone == p.placement.alone)),
            "a split of a flat view is none");
    flat = p.placement.dim;
    alone = p.placement.alone;
  }
}
inline void check_axes(const AxisList& axes) {
  for (int i = 0; i < axes.size(); ++i) {
    require(axes[i] != nullptr, "an index leads nowhere");
    for (int j = 0; j < i; ++j) require(axes[i] != axes[j], "an axis is named twice");
  }
}
inline void check_transition(const Transition& t) {
  check_axes(t.axes);
  for (const Placement& p : {t.from, t.to, t.among}) check_placement(p);
  require(t.along >= -1 && t.along <= 1, "a number is out of range");
  require(t.chunks >= 1 && t.chunks <= most_chunks, "a number is out of range");
}
/// What one record says alone, and that its indices lead somewhere or, where they are -1, nowhere.
inline void check_records(const Graph& g) {
  const auto lead = [](const int& i, int n) { require(i >= -1 && i < n, "an index leads nowhere"); };
  each_index<Value>([&](const int& i) { lead(i, g.values.size()); }, g);
  each_index<Node>([&](const int& i) { lead(i, g.nodes.size()); }, g);
  each_index<Region>([&](const int& i) { lead(i, g.regions.size()); }, g);
  each_index<Origin>([&](const int& i) { lead(i, g.origins.size()); }, g);
  each_index<Member>([&](const int& i) { lead(i, g.members.size()); }, g);
  for (const Value& v : g.values) {
    check_type(v.type);
    check_iterations(v.stack, 0);
  }
  for (const Node& n : g.nodes) {
    require(n.results >= 0 && n.results <= max_results, "a number is out of range");
    require(n.flops >= 0, "an operation has a negative number of floating point operations");
    check_transition(n.transition);
  }
  for (const Region& r : g.regions) {
    check_iterations(r.count, 1);
    require(r.blocks >= 1 && r.blocks <= max_node_operands, "a number is out of range");
  }
  for (const Origin& o : g.origins) check_axes(o.axes);
  for (const Member& m : g.members) {
    check_type(m.type);
    check_iterations(m.layers, 0);
  }
}

/// Of layers that are cut by cost: stages share no dimension but the layers', as with a mesh that one is not divided.
inline void check_balanced(const Graph& g) {
  int layers = 0;
  for (const Region& r : g.regions)
    if (r.staged) layers = r.layers();
  const auto sound = [&](const Type& type) {
    for (const Dim& d : type.layout.dims)
      require(!d.split_by(g.stages) || (d.count == 1 && d.size == layers),
              "stages share a dimension that is not that of the layers");
  };
  for (const Value& v : g.values) sound(v.type);
  for (const Member& m : g.members) sound(m.type);
}

/// Of a pipeline: one loop over micro-batches, within it the staged layers, forward and back at most once, and the
/// edges before and behind them.
inline void check_stages(const Graph& g) {
  int loop = 0, staged[] = {0, 0}, edges[] = {0, 0, 0, 0};
  for (int r = 1; r < g.regions.size(); ++r) {
    const Region& region = g.regions[r];
    require(!region.staged || g.stages != nullptr, "there are no stages");
    if (region.kind == RegionKind::micro_batches && g.stages != nullptr) {
      require(loop == 0 && region.parent == 0, "stages do not share one loop over micro-batches");
      loop = r;
    }
    if (!region.staged) continue;
    require(region.kind == RegionKind::layers && region.parent == loop && loop > 0,
            "layers on stages stand outside the loop over micro-batches");
    require(++staged[region.reversed ? 1 : 0] == 1, "there are two loops over stages");
    bool shared = false;  // so that a mesh which divides what is split divides the loop
    for (const Stack& s : g.stacks)
      shared = shared || (s.region == r && g.values[s.outside].type.layout.dims[0].split_by(g.stages));
    require(shared, "layers on stages are not shared out");
  }
  for (const Node& n : g.nodes) {
    const Transition& t = n.transition;
    const bool on_stages = g.stages != nullptr && t.axes.size() == 1 && t.axes[0] == g.stages;
    require(
        t.among == Placement{} || (on_stages && t.among.kind == PlacementKind::at && (t.among.coordinates & 1) != 0),
        "a move is made among no ranks");
    if (t.along == 0) continue;
    require(on_stages && (t.collective == Collective::send || t.collective == Collective::receive) &&
                n.region == loop && n.operands.size() == 1 && !n.owns,
            "an edge between stages is none");
    require(++edges[(t.along > 0 ? 0 : 2) + (t.collective == Collective::send ? 0 : 1)] == 1,
            "an edge between stages stands there twice");
  }
  require(edges[0] == edges[1] && edges[2] == edges[3], "an edge between stages has one end");
  if (g.stages == nullptr) return require(g.chunks == 1 && !g.balanced, "there are no stages");
  require(loop > 0, "stages have no loop over micro-batches");
  require(g.nodes.size() * g.chunks < 4 * most_nodes, "its stages have too many chunks");
  require(g.schedule != nullptr && g.schedule->chunks == g.chunks, "its stages have other chunks than their schedule");
  for (const Node& n : g.nodes)
    require(n.transition.along == 0 || n.transition.chunks == g.chunks, "an edge has other chunks than its stages");
  if (g.balanced) check_balanced(g);
}

/// What a kernel computes, and changes nothing in place.
inline bool can_be_fused(const Node& node) {
  return node.operation->computes && !node.operation->aliases && !node.operation->updates &&
         node.operation->structural == Structural::none && node.results == 1 && node.transition.axes.empty();
}

/// Of ring attention: what a mesh unrolls. Its keys lead to the one axis of the ring.
inline void check_ring(const Graph& g, const Node& node) {
  const char* const what = "a ring of keys and values is none";
  require(node.ints.size() >= 3 && (node.results == 2 || node.results == 3), what);
  const operation::Attending attending(node.ints);
  require(node.operands.size() >= attending.of_keys() + attending.packed + (node.results == 3 ? 3 : 0), what);
  for (int o = 0; o < 3; ++o) require(g.values[node.operands[o]].type.layout.rank() == 4, what);
  for (int o = 1; o < attending.of_keys(); ++o) {
    const Layout& keys = g.values[node.operands[o]].type.layout;
    require(keys.rank() > 1 && keys.dims[1].count == 1 &&
                keys.dims[1].axes[0] == g.values[node.operands[1]].type.layout.dims[1].axes[0],
            what);
  }
}

/// Whether two nodes can be computed together: of one phase, on the same stages.
inline bool goes_with(const Graph& g, const Node& node, const Node& then) {
  const auto at = [&](const Node& n) { return g.values[n.result].type.layout.on(g.stages); };
  return can_be_fused(node) && can_be_fused(then) && node.phase == then.phase &&
         (g.stages == nullptr || at(node) == at(then));
}

/// Whether a node completes, in the last micro-batch, what these have added up of a layer, and nothing reads that but
/// what is behind them.
inline bool happens_in_last(const Graph& g, const Node& node) {
  if (!node.is(Structural::move) || node.transition.collective != Collective::all_reduce || node.owns ||
      g.stages != nullptr || g.regions[node.in_last].kind != RegionKind::micro_batches ||
      g.regions[node.region].parent != node.in_last)
    return false;
  const Node& terms = g.maker(node.operands[0]);
  bool sound = terms.operation->updates && terms.region == node.region;
  for (const Node& reader : g.nodes)
    for (const int o : reader.operands) {
      const bool stacked = reader.is(Structural::stacked) && reader.region == node.in_last;
      sound = sound && (o != node.result || stacked) && (o != node.operands[0] || stacked || &reader == &node);
    }
  return sound;
}

/// Throws Damaged unless every index exists, operands come before what reads them, loops are nested as they are
/// ordered.
inline void check_graph(const Graph& g) {
  check_records(g);
  const int values = g.values.size(), nodes = g.nodes.size(), regions = g.regions.size();
  const auto exists = [](int i, int n) { require(i >= 0 && i < n, "an index leads nowhere"); };
  exists(0, regions);
  require(g.regions[0].parent == -1 && g.regions[0].loop == 0, "the outermost region is none");
  for (int r = 1; r < regions; ++r) {
    const Region& region = g.regions[r];
    exists(region.parent, r);
    exists(region.loop, r + 1);
    exists(region.begin, nodes);
    exists(region.end, nodes);
    require(g.nodes[region.begin].is(Structural::begin_region) && g.nodes[region.begin].region == r &&
                g.nodes[region.end].is(Structural::end_region) && g.nodes[region.end].region == r,
            "a region has no beginning or no end");
  }
  int made = 0;
  const auto lies_flat = [&](int value, const Transition& t) { return g.values[value].type.layout.on(t.axes[0]).flat; };
  for (int n = 0; n < nodes; ++n) {
    const Node& node = g.nodes[n];
    exists(node.region, regions);
    for (const int o : node.operands) exists(o, values);
    require(node.result >= 0 && node.result + node.results <= values, "an index leads nowhere");
    for (int r = 0; r < node.results; ++r) require(g.values[node.result + r].node == n, "a value has another maker");
    made += node.results;
    const Operation* o = node.operation;
    const bool takes_one = o->structural == Structural::move || o->structural == Structural::carry ||
                           o->structural == Structural::carried || o->structural == Structural::layer ||
                           o->structural == Structural::stacked || o->aliases || o->view ||
                           !node.transition.axes.empty();
    require(!takes_one || (!node.operands.empty() && node.results == 1), "an operation has too few operands");
    const Transition& t = node.transition;
    require(t.axes.empty() ||
                ((!t.from.flat || lies_flat(node.operands[0], t)) && (!t.to.flat || lies_flat(node.result, t))),
            "a move leads to no flat view, or from none");
    require(o->structural != Structural::rounded || (node.operands.size() == 2 && node.results == 1),
            "an operation has too few operands");
    require(o->structural != Structural::layer ||
                (node.ints.size() == 1 && node.ints[0] >= 0 && node.ints[0] < g.regions[node.region].blocks),
            "a layer is none of its iteration's");
    require(!o->updates || node.results <= node.operands.size(), "an operation has too few operands");
    require(t.collective != Collective::rotate, "a ring goes around without a mesh");
    if (o->ring) check_ring(g, node);
    const bool gates = o->structural == Structural::begin_region || o->structural == Structural::end_region;
    require(!gates || (node.ints.size() == 1 && node.ints[0] == node.region && node.region > 0 && node.results == 0 &&
                       node.operands.empty() && node.transition.axes.empty()),
            "a region has no beginning or no end");
  }
  require(made == values, "a value has no maker");
  Vector<int> place;
  place.resize(nodes, -1);
  int region = 0, fused = 0;
  for (int at = 0; at < g.order.size(); ++at) {
    const int n = g.order[at];
    exists(n, nodes);
    const Node& node = g.nodes[n];
    require(place[n] < 0, "a node stands twice in the order");
    place[n] = at;
    if (node.is(Structural::begin_region)) {
      require(g.regions[node.region].parent == region && g.regions[node.region].begin == n, "regions are not nested");
      region = node.region;
    }
    require(node.region == region, "a node stands outside its region");
    if (node.is(Structural::end_region)) {
      require(g.regions[region].end == n, "regions are not nested");
      region = g.regions[region].parent;
    }
    for (const int o : node.operands)
      require(place[g.values[o].node] >= 0 && place[g.values[o].node] < at, "an operand is read before it is made");
    const bool follows = at > 0 && g.nodes[g.order[at - 1]].then == n;
    fused = follows ? fused + 1 : 1;
    require(node.then < 0 || (at + 1 < g.order.size() && g.order[at + 1] == node.then), "a fusion is none");
    require(!follows || (fused <= longest_fusion && goes_with(g, g.nodes[g.order[at - 1]], node)), "a fusion is none");
  }
  each_needed(
      [&](int value) {
        exists(value, values);
        require(place[g.values[value].node] >= 0, "nodes are missing in the order");
      },
      g);
  for (int n = 0; n < nodes; ++n)
    require(place[n] >= 0 || can_be_fused(g.nodes[n]), "nodes are missing in the order");  // what nothing needs
  require(region == 0, "nodes are missing in the order");
  double bytes = 0;
  for (const Value& v : g.values) {
    exists(v.node, nodes);
    exists(v.region, regions);
    require(v.region == g.nodes[v.node].region, "a value stands outside its region");
    double size = 8;
    for (const Dim& d : v.type.layout.dims) size *= static_cast<double>(d.size < 1 ? 1 : d.size);
    double times = 2;
    for (int r = v.region; r >= 0; r = g.regions[r].parent) times *= g.regions[r].count + 1;
    bytes += size * times;
  }
  require(bytes < 1e18, "its tensors are too large");
  for (const Node& node : g.nodes) {
    if (!node.is(Structural::in_bucket)) continue;
    const Layout &all = g.values[node.operands[0]].type.layout, &part = g.values[node.result].type.layout;
    for (const Layout* l : {&all, &part})
      for (const Dim& d : l->dims) require(d.count == 0, "a bucket is split");
    require(node.ints.size() == 1 && node.ints[0] >= 0 && node.ints[0] <= all.elements() &&
                part.elements() <= all.elements() - node.ints[0] &&
                g.values[node.operands[0]].type.dtype == g.values[node.result].type.dtype,
            "a part lies outside its bucket");
  }
  double runs = 0;  // of all nodes in a step: a simulation walks through them
  for (const Node& n : g.nodes) {
    double times = 1;
    for (int r = n.region; r >= 0; r = g.regions[r].parent) times *= g.regions[r].count;
    runs += times;
  }
  require(runs * g.chunks < 1e7, "its loops run too often");
  double flops = 0;
  for (const Node& n : g.nodes) flops += static_cast<double>(n.flops);
  require(flops < 9e18, "its operations are too large");
  for (int i = 0; i < g.carries.size(); ++i)
    for (int j = 0; j < i; ++j)
      require(g.carries[i].inside != g.carries[j].inside && g.carries[i].result != g.carries[j].result,
              "two carried values are one");
  for (int i = 0; i < g.members.size(); ++i)
    for (int j = 0; j < i; ++j) require(g.members[i].value != g.members[j].value, "two members are one value");
  for (const Carry& c : g.carries) {
    exists(c.region, regions);
    exists(c.initial, values);
    exists(c.inside, values);
    exists(c.returned, values);
    exists(c.result, values);
    require(c.region > 0 && g.values[c.inside].region == c.region && g.inside(g.values[c.returned].region, c.region) &&
                g.maker(c.inside).is(Structural::carry) && g.maker(c.result).is(Structural::carried) &&
                place[g.values[c.initial].node] < place[g.regions[c.region].begin],
            "a carried value is none");
    require(same_extents(g.values[c.initial].type.layout, g.values[c.inside].type.layout) &&
                same_extents(g.values[c.returned].type.layout, g.values[c.inside].type.layout),
            "a carried value changes its shape");
  }
  for (const Stack& s : g.stacks) {
    exists(s.region, regions);
    exists(s.inside, values);
    exists(s.outside, values);
    const Value &inside = g.values[s.inside], &outside = g.values[s.outside];
    const Operation* maker = g.maker(s.outside).operation;
    require(s.region > 0 && inside.region == s.region && !g.maker(s.inside).is(Structural::carry) &&
                (maker == &operation::stacked || g.maker(s.inside).is(Structural::layer)) &&
                outside.type.layout.rank() == inside.type.layout.rank() + 1 &&
                outside.type.layout.dims[0].size == g.regions[s.region].layers(),
            "a stack is none");
    if (const Node& stacked = g.maker(s.outside); fills(g, s)) {
      bool found = false;
      for (const int o : stacked.operands) found = found || o == s.inside;
      require(found && stacked.operands.size() == g.regions[s.region].blocks, "a stack is none");
    }
  }
  for (const Node& n : g.nodes)
    require(n.in_last < 0 || happens_in_last(g, n), "what happens in a last iteration is none");
  for (const Origin& o : g.origins) {
    for (const int v : o.operands) exists(v, values);
    require(o.rules.size() == o.axes.size(), "an origin has axes without rules");
    for (const int r : o.rules) require(r >= 0 && r <= 5, "there is no such rule");
  }
  for (const Member& m : g.members) {
    exists(m.value, values);
    require(m.type.layout.dims == g.values[m.value].type.layout.dims, "a member has other dimensions than its value");
  }
  double characters = 0;  // of members, as often as they are printed
  for (const Value& v : g.values) characters += v.member < 0 ? 0 : g.members[v.member].path.size;
  for (const Node& n : g.nodes) characters += n.member < 0 ? 0 : g.members[n.member].path.size;
  require(characters < 1e8, "its names are too long");
  for (const Output& o : g.outputs) exists(o.value, values);
  check_stages(g);
  for (const int n : g.order) {
    const Node& node = g.nodes[n];
    const Transition& t = node.transition;
    if (t.axes.empty() || t.along != 0 || t.among.kind == PlacementKind::at) continue;
    Layout to = g.values[node.operands[0]].type.layout;
    for (const Axis* a : t.axes) to = to.with(a, t.to);
    require(to == g.values[node.result].type.layout, "a move leads to another placement than its result has");
    require(copies(t.collective) == ((t.from == OnHost) != (t.to == OnHost)), "a copy between memories is none");
    require(copies(t.collective) || !communicates(t.collective) || !on_host(to),
            "ranks exchange what lies in a host's memory");
  }
}

}  // namespace parallel::internals::object
