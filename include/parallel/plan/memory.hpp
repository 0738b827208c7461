// Where every value lies: offsets in one arena from live ranges, so that the peak is a constant and the step allocates
// nothing.
#pragma once
#include <parallel/plan/events.hpp>
#include <parallel/plan/exchange_room.hpp>
#include <parallel/plan/kept.hpp>
#include <parallel/plan/packing.hpp>

namespace parallel::internals {

constexpr MemoryBlock block_of(Role role, bool host) {
  switch (role) {
    case Role::parameter: return host ? MemoryBlock::host_parameter : MemoryBlock::parameter;
    case Role::state: return host ? MemoryBlock::host_state : MemoryBlock::state;
    case Role::input: return MemoryBlock::input;
  }
  return MemoryBlock::none;
}

struct Placing {
  const GraphView& g;
  const Mesh& mesh;
  Vector<Storage> storage{};    ///< per value; arena offsets are relative to their allocation until packed
  Vector<int> allocation_of{};  ///< per value: index of its allocation, or -1
  Vector<int> packing_of{};     ///< per node: index of its packing buffer, or -1
  Vector<Allocation> allocations{};
  Memory memory{};

  constexpr Placing(const GraphView& graph, const Mesh& m) : g(graph), mesh(m) {}

  constexpr std::int64_t bytes(int value) const { return local_bytes(g.value(value).type, mesh); }

  /// Room for the values of so many iterations, and so often as parts of a stage's work have some under way.
  constexpr void own(int value, std::int64_t size, int slots, int home) {
    Allocation a;
    a.owner = value;
    a.host = on_host(g.value(value).type.layout);
    a.bytes = aligned(size) * slots;
    a.home = home;
    if (kept_.crosses[value]) {
      storage[value].lane = a.bytes;
      a.bytes *= g.lanes();
      a.home = 0;
    }
    allocation_of[value] = allocations.size();
    storage[value].block = a.host ? MemoryBlock::host_arena : MemoryBlock::arena;
    allocations.push_back(a);
  }

  constexpr void lie_with(int value, int from) {
    storage[value] = storage[from];
    allocation_of[value] = allocation_of[from];
  }
  /// Of the layers of a stack that an iteration takes the value is this one.
  constexpr void lie_as_layer(int value, int stack, std::int64_t block, const Region& region) {
    lie_with(value, stack);
    storage[value].offset += block * bytes(value);
    storage[value].stride = region.blocks * bytes(value);
    storage[value].loop = region.loop;
  }

  /// Decides for every value whose storage it takes. A value's maker stands before it, but for what loops hand on.
  constexpr void assign(std::span<const Event> events) {
    storage.resize(g.size_of_values());
    allocation_of.resize(g.size_of_values(), -1);
    packing_of.resize(static_cast<int>(g.nodes.size()), -1);
    kept_ = kept_values(g, mesh);
    ahead_.resize(static_cast<int>(g.nodes.size()), false);
    for (const Event& e : events)
      if (e.ahead) ahead_[e.node] = true;
    replaces_.resize(g.size_of_values(), -1);
    for (const Member& m : g.members)
      if (m.updated >= 0)
        if (const int gathered = before_aliases(g, mesh, m.updated);
            calls(g.maker(gathered), mesh) || g.maker(gathered).is(Structural::stacked))
          replaces_[gathered] = m.value;
    for (const Carry& c : g.carries)  // parameters that each micro-batch updates
      if (const int gathered = before_aliases(g, mesh, c.returned);
          g.maker(gathered).phase == Phase::optimizer && calls(g.maker(gathered), mesh))
        replaces_[gathered] = c.inside;
    here_.resize(static_cast<int>(g.nodes.size()), false);
    for (const int n : g.order) here_[n] = true;
    std::int64_t* next = memory.blocks;
    const auto persistent = [&](int value, MemoryBlock block) {
      storage[value].block = block;
      storage[value].offset = next[static_cast<int>(block)];
      next[static_cast<int>(block)] += aligned(bytes(value));
    };
    if (g.scalar_value >= 0) persistent(g.scalar_value, MemoryBlock::scalars);
    for (const Member& m : g.members)
      if (here_[g.value(m.value).node]) persistent(m.value, block_of(m.role, on_host(m.type.layout)));
    Vector<bool> alive;
    alive.resize(g.size_of_values(), false);
    passes_on_.resize(g.size_of_values(), false);
    readers_ = count_readers();
    made_in_.resize(g.size_of_values(), -1);
    Vector<int> times_read;  // per value that is no alias: by how many nodes that happen, it or what looks at it
    times_read.resize(g.size_of_values(), 0);
    for (const Event& e : events)
      each_node(g, e, [&](int n) {
        const Node& node = g.node(n);
        for (int r = 0; r < node.results; ++r) alive[node.result + r] = true;
        for (const int o : node.operands) {
          int v = before_aliases(g, mesh, o);
          times_read[v] += e.kind == EventKind::wait ? 0 : 1;
          for (;; v = before_aliases(g, mesh, g.maker(v).operands[0])) {
            alive[v] = true;
            if (!g.maker(v).is(Structural::layer)) break;  // else with a slice its stack
          }
        }
        if (n != e.node) pass_on(node, readers_);
      });
    each_needed([&](int value) { ++times_read[before_aliases(g, mesh, value)]; }, g);
    for (const Carry& c : g.carries)
      if (c.result >= 0 && alive[c.result]) alive[c.inside] = true;

    for (const Stack& s : g.stacks) {  // a stack's own storage comes before its iterations' values
      const int root = before_aliases(g, mesh, s.inside);
      if (!fills(g, s) || !alive[root] || filled_in_place(s.inside) >= 0) continue;
      if (storage[s.outside].block != MemoryBlock::none)
        ;  // another layer of the same iteration has come first
      else if (const int member = replaces_[s.outside]; member >= 0)
        lie_with(s.outside, member);
      else
        own(s.outside, bytes(s.outside), 1, g.region(s.region).parent);
      int block = 0;
      while (g.maker(s.outside).operands[block] != s.inside) ++block;
      lie_as_layer(root, s.outside, block, g.region(s.region));
      if (allocation_of[root] >= 0) make_in(root, times_read);
    }
    for (const int n : g.order) {
      const Node& node = g.node(n);
      for (int r = 0; r < node.results; ++r) place(node, r, node.result + r, alive);
    }
  }

  /// A layer's value that on this mesh is no other than what an iteration makes, for nothing else: that is made in the
  /// layer's place.
  constexpr void make_in(int layer, const Vector<int>& times_read) {
    const Node& node = g.maker(layer);
    if (!node.owns || !node.is(Structural::move) || !looks_at(g, node, mesh)) return;
    const int made = before_aliases(g, mesh, node.operands[0]);
    const Node& maker = g.maker(made);
    if (times_read[made] == 1 && maker.region == node.region && !maker.owns && !maker.operation->updates &&
        (maker.operation->computes || calls(maker, mesh)) && g.value(made).type.dtype == g.value(layer).type.dtype &&
        bytes(made) == bytes(layer))
      made_in_[made] = layer;
  }
  /// The stack of whose slices iterations make another in place, by an update, or as nothing moves; or -1.
  constexpr int filled_in_place(int inside) const {
    int root = before_aliases(g, mesh, inside);
    if (completes_in_place(g.maker(root))) root = before_aliases(g, mesh, g.maker(root).operands[0]);
    if (const Node& maker = g.maker(root); maker.operation->updates)
      root = before_aliases(g, mesh, maker.operands[root - maker.result]);
    return g.maker(root).is(Structural::layer) ? g.maker(root).operands[0] : -1;
  }
  /// Whether what an iteration hands on takes the place of what it took.
  constexpr bool goes_on_in_place(const Carry& c) const {
    for (int v = before_aliases(g, mesh, c.returned); v != c.inside;) {
      if (replaces_[v] == c.inside) return true;
      const Node& maker = g.maker(v);
      const int from = maker.operation->updates        ? maker.operands[v - maker.result]
                       : maker.is(Structural::stacked) ? filled_in_place(maker.operands[0])
                                                       : -1;
      if (from < 0) return false;
      v = before_aliases(g, mesh, from);
    }
    return true;
  }

  constexpr void place(const Node& node, int r, int value, const Vector<bool>& alive) {
    if (storage[value].block != MemoryBlock::none) return;
    if (node.is(Structural::stacked)) {
      if (const int stack = filled_in_place(node.operands[0]); stack >= 0) lie_with(value, stack);
      return;
    }
    if (passes_on_[value]) {
      const Node& then = g.node(node.then);
      place(then, 0, then.result, alive);
      return lie_with(value, then.result);
    }
    if (node.is(Structural::layer)) {
      lie_as_layer(value, node.operands[0], node.ints[0], g.region(node.region));
    } else if (node.operation->updates) {
      lie_with(value, node.operands[r]);
    } else if (replaces_[value] >= 0 && here_[g.value(replaces_[value]).node]) {
      lie_with(value, replaces_[value]);
    } else if (node.is(Structural::carried)) {
      for (const Carry& c : g.carries)
        if (c.result == value && storage[c.inside].block != MemoryBlock::none) {
          lie_with(value, c.inside);
          const Storage& s = storage[c.inside];
          const std::int64_t last = s.modulo == 0 ? 0 : g.region(c.region).count % s.modulo * s.stride;
          storage[value] = {.block = s.block, .offset = s.offset + last, .lane = s.lane};
        }
    } else if (is_alias(g, node, mesh)) {
      lie_with(value, node.operands[0]);
      if (node.is(Structural::in_bucket)) storage[value].offset += node.ints[0] * bytes_of(g.value(value).type.dtype);
    } else if (completes_in_place(node)) {
      lie_with(value, node.operands[0]);
    } else if (alive[value]) {
      const Region& region = g.region(node.region);
      if (node.is(Structural::carry)) {
        place_carry(value, region);
      } else if (ahead_[g.value(value).node] && !kept_.iterations[value]) {
        own(value, bytes(value), 2, region.parent);  // the next iteration's is under way while this one's is used
        Storage& s = storage[value];
        s.stride = aligned(bytes(value));
        s.loop = region.loop;
        s.modulo = 2;
        s.of_chunk = region.staged;
        s.region = node.region;
      } else if (kept_.iterations[value]) {
        own(value, bytes(value), region.count, region.parent);
        storage[value].stride = aligned(bytes(value));
        storage[value].loop = region.loop;
        storage[value].of_chunk = region.staged;
      } else if (made_in_[value] >= 0) {
        lie_with(value, made_in_[value]);
      } else {
        own(value, bytes(value), 1, node.region);
      }
    }
  }

  /// Whether a sum is completed in the place of its terms, which are a layer's and nobody else's
  /// (program/last_iteration.hpp).
  constexpr bool completes_in_place(const Node& node) const { return node.in_last >= 0 && calls(node, mesh); }

  /// What only the next node of a fusion reads lies where that node's result does.
  constexpr void pass_on(const Node& then, const Vector<int>& readers) {
    for (const int o : then.operands)
      if (g.maker(o).then == g.value(then.result).node && readers[o] == 1 &&
          g.value(o).type == g.value(then.result).type)
        passes_on_[o] = true;
  }
  constexpr Vector<int> count_readers() const {
    Vector<int> readers;
    readers.resize(g.size_of_values(), 0);
    for (int n = 0; n < here_.size(); ++n)
      if (here_[n])
        for (const int o : g.node(n).operands) ++readers[o];
    each_needed([&](int value) { ++readers[value]; }, g);
    return readers;
  }

  /// A carried value has a slot for every iteration and the last result where the backward loop reads it, else two by
  /// turns, or one where an iteration updates it in place.
  constexpr void place_carry(int value, const Region& region) {
    for (const Carry& c : g.carries) {
      if (c.inside != value) continue;
      const bool in_place = goes_on_in_place(c);
      // of a member, or what nobody else reads: as operand of the carry, and as its initial value
      if (in_place && storage[c.initial].block != MemoryBlock::none &&
          (allocation_of[c.initial] < 0 || readers_[c.initial] == 2))
        return lie_with(value, c.initial);
      const int slots = in_place ? 1 : kept_.iterations[value] || kept_.iterations[c.returned] ? region.count + 1 : 2;
      own(value, bytes(value), slots, region.parent);
      if (in_place) return;
      Storage& s = storage[value];
      s.stride = aligned(bytes(value));
      s.loop = region.loop;
      s.modulo = slots;
      s.of_chunk = region.staged;
      s.region = c.region;
      if (kept_.crosses[value]) kept_.crosses[c.returned] = true;
      storage[c.returned] = s;
      storage[c.returned].shift = 1;
      allocation_of[c.returned] = allocation_of[value];
    }
  }

  constexpr void touch(int allocation, int event, int region) {
    if (allocation < 0) return;
    Allocation& a = allocations[allocation];
    int first = event, last = event;
    const int loop = g.child_towards(a.home, region);
    if (loop >= 0) {  // what outlives an iteration lives through the loop
      first = begins_[loop] < first ? begins_[loop] : first;
      last = ends_[loop] > last ? ends_[loop] : last;
    }
    a.first = a.first < 0 || first < a.first ? first : a.first;
    a.last = last > a.last ? last : a.last;
  }

  /// What is still under way when an iteration ends lives through the loop.
  constexpr void touch_loop(int allocation, int region) {
    if (allocation < 0) return;
    Allocation& a = allocations[allocation];
    a.first = a.first < 0 || begins_[region] < a.first ? begins_[region] : a.first;
    a.last = ends_[region] > a.last ? ends_[region] : a.last;
  }

  constexpr void live(std::span<const Event> events) {
    begins_.resize(static_cast<int>(g.regions.size()), 0);
    ends_.resize(static_cast<int>(g.regions.size()), 0);
    const int end = static_cast<int>(events.size());
    for (int at = 0; at < end; ++at) {
      const Event& e = events[static_cast<std::size_t>(at)];
      const Node& node = g.node(e.node);
      if (e.kind == EventKind::begin) {  // a part of a stage's work has a loop of its own
        begins_[node.region] = at;
        ends_[node.region] = e.partner;
      }
      if (e.crossing)
        for (const int o : node.operands) touch_loop(allocation_of[o], node.region);
      // what is started ahead of a loop stands before it
      const int region = e.ahead && !starts_next(e) ? int{g.region(node.region).parent} : int{node.region};
      each_node(g, e, [&](int n) {
        for (const int o : g.node(n).operands) touch(allocation_of[o], at, region);
        for (int r = 0; r < g.node(n).results; ++r) touch(allocation_of[g.node(n).result + r], at, region);
      });
      if (e.kind == EventKind::begin)
        for (const Carry& c : g.carries)
          if (c.region == node.region) {
            touch(allocation_of[c.initial], at, g.region(node.region).parent);
            touch(allocation_of[c.inside], at, node.region);
          }
      if (e.kind == EventKind::start && !starts_next(e)) {
        const std::int64_t size = packing_bytes(g, node, mesh);
        if (size > 0) {
          Allocation a;
          a.owner = -1 - e.node;
          a.bytes = aligned(size);
          a.home = e.ahead ? region : int{node.region};
          packing_of[e.node] = allocations.size();
          allocations.push_back(a);
        }
      }
      touch(packing_of[e.node], at, region);
    }
    for (const Event& e : events)
      if (e.crossing) touch_loop(packing_of[e.node], g.node(e.node).region);
    for (const Output& o : g.outputs) touch(allocation_of[o.value], end, 0);
    if (g.commit >= 0) touch(allocation_of[g.commit], end, 0);
  }
  /// Gives every allocation its offset, and counts.
  constexpr void pack() {
    memory.arena = parallel::internals::pack(allocations, false);
    memory.host_arena = parallel::internals::pack(allocations, true);
    account();
  }

  /// Per value, its storage with offsets in the arena.
  constexpr Vector<Storage> packed_storage() const {
    Vector<Storage> result = storage;
    for (int v = 0; v < result.size(); ++v)
      if (allocation_of[v] >= 0) result[v].offset += allocations[allocation_of[v]].offset;
    return result;
  }
  /// Per node, where in the arena its collective brings slices together.
  constexpr Vector<std::int64_t> packed_packing() const {
    Vector<std::int64_t> result;
    result.resize(packing_of.size(), 0);
    for (int n = 0; n < result.size(); ++n)
      if (packing_of[n] >= 0) result[n] = allocations[packing_of[n]].offset;
    return result;
  }

 private:
  constexpr void account() {
    for (const int at : g.order) {
      const Node& n = g.node(at);
      for (const int o : n.operands) {
        const int a = allocation_of[o];
        if (a < 0 || allocations[a].first < 0) continue;
        const Value& owner = g.value(allocations[a].owner);
        const Phase made = g.node(owner.node).phase;
        if (made == Phase::forward && n.phase == Phase::backward)
          allocations[a].use = owner.kind == Kind::parameter ? Use::parameters_in_use : Use::activations;
        if (made == Phase::backward && n.phase == Phase::optimizer) allocations[a].use = Use::gradients;
      }
    }
    for (const Carry& c : g.carries)  // in which gradients of the micro-batches add up
      if (const int a = allocation_of[c.inside];
          a >= 0 && g.maker(c.inside).phase == Phase::backward && g.region(c.region).kind == RegionKind::micro_batches)
        allocations[a].use = Use::gradients;
    for (Allocation& a : allocations) {
      if (a.owner < 0)
        a.use = Use::buffers;
      else if (a.use == Use::temporaries && g.value(a.owner).kind == Kind::parameter)
        a.use = Use::parameters_in_use;
      if (a.first >= 0) (a.host ? memory.host_by_use : memory.by_use)[static_cast<int>(a.use)] += a.bytes;
    }
    for (const bool host : {false, true}) {
      std::int64_t* const by_use = host ? memory.host_by_use : memory.by_use;
      by_use[static_cast<int>(Use::parameters)] = memory.of(block_of(Role::parameter, host));
      by_use[static_cast<int>(Use::optimizer_state)] = memory.of(block_of(Role::state, host));
    }
    memory.by_use[static_cast<int>(Use::inputs)] = memory.of(MemoryBlock::input);
  }

  /// per region: the events at which it, or of it the part that is looked at, begins and ends
  Vector<int> begins_{}, ends_{};
  Vector<bool> here_{};       ///< per node: whether this stage has it
  Vector<bool> passes_on_{};  ///< per value
  Vector<int> made_in_{};     ///< per value: the layer in whose place it is made, or -1
  Vector<int> readers_{};     ///< per value
  Vector<bool> ahead_{};      ///< per node: a collective that iterations start for the next
  Vector<int> replaces_{};    ///< per value that is gathered in the place of a member: the member's; or -1
  Kept kept_{};
};

}  // namespace parallel::internals
