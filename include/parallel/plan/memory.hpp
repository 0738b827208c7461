// Where every value lies: offsets in one arena from live ranges, so that the peak is a constant and the step allocates
// nothing.
#pragma once
#include <parallel/plan/events.hpp>
#include <parallel/plan/kept.hpp>
#include <parallel/plan/packing.hpp>

namespace parallel::internals {

/// The block of memory that a value lies in, of the device or of its host. All but the arenas outlive the step.
enum class MemoryBlock : std::uint8_t {
  none,
  parameter,
  state,
  input,
  scalars,
  arena,
  host_parameter,
  host_state,
  host_arena
};
inline constexpr int memory_blocks = 9;
constexpr bool of_host(MemoryBlock b) { return b >= MemoryBlock::host_parameter; }
/// The address of a value: block + offset + stride * slot, where slot follows a loop's index (0 to count - 1).
struct Storage {
  MemoryBlock block = MemoryBlock::none;
  std::int64_t offset = 0;
  std::int64_t stride = 0;  ///< 0: one slot
  int loop = 0;             ///< the loop whose index chooses the slot
  bool of_chunk = false;    ///< slots count from the first layer of a stage's chunk, not of the stage
  std::int64_t lane = 0;    ///< bytes from one lane to the next of what parts of a stage's work hand to each other
  int shift = 0;            ///< slot = (iteration + shift) mod modulo
  int modulo = 0;           ///< 0: slot = index; else iterations are counted from 0 also where the loop goes back
  int region = 0;
};

struct Memory {
  std::int64_t arena = 0;                ///< bytes of the arena: the largest sum of what lives at one time, as packed
  std::int64_t host_arena = 0;           ///< of the host's
  std::int64_t blocks[memory_blocks]{};  ///< bytes of each persistent block, by MemoryBlock
  /// bytes by use, of the device and of the host; arena uses are counted whole, though they share room over time
  std::int64_t by_use[uses]{};
  std::int64_t host_by_use[uses]{};

  constexpr std::int64_t of(Use use) const { return by_use[static_cast<int>(use)]; }
  constexpr std::int64_t of(MemoryBlock block) const {
    return block == MemoryBlock::arena        ? arena
           : block == MemoryBlock::host_arena ? host_arena
                                              : blocks[static_cast<int>(block)];
  }
  /// All that lies in the device's memory, and in the host's.
  constexpr std::int64_t peak() const { return total(false); }
  constexpr std::int64_t host() const { return total(true); }
  constexpr std::int64_t total(bool host) const {
    std::int64_t bytes = 0;
    for (int b = 0; b < memory_blocks; ++b)
      if (of_host(static_cast<MemoryBlock>(b)) == host) bytes += of(static_cast<MemoryBlock>(b));
    return bytes;
  }
};

inline constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// A gather from a flat split, or a reduction or slice to one: `outer` times a whole of `whole` elements, of which each
/// of n ranks holds `share`, the last of them with padding.
struct FlatExchange {
  std::int64_t outer = 1, whole = 1, n = 1, share = 1;
  int bytes = 4;  ///< of an element

  constexpr FlatExchange(const GraphView& g, const Node& node, const Mesh& mesh) {
    const Transition& t = node.transition;
    const bool gathers = t.from.flat;
    const Type& split = g.value(gathers ? node.operands[0] : int{node.result}).type;
    const LocalPart part = local_part(split.layout, mesh);
    for (int d = 0; d < part.flat_from; ++d) outer *= part.size[d];
    n = mesh.extent(t.axes);
    share = part.size[part.flat_from] * part.each;
    whole = local_elements(g.value(gathers ? int{node.result} : node.operands[0]).type.layout, mesh) / outer;
    bytes = bytes_of(split.dtype);
  }
  constexpr std::int64_t padded() const { return aligned(outer * n * share * bytes); }
  constexpr bool pads() const { return n * share != whole; }
  constexpr bool packs() const { return outer > 1 && n > 1; }
  /// What it works in beside its operand and result: what is padded, then what is brought together.
  constexpr std::int64_t room() const { return (pads() ? padded() : 0) + (packs() ? padded() : 0); }
};

/// An all-to-all between slices of the first dimension, whole matrices, of which each of n ranks holds `share` with
/// padding, and parts of all of them: of a dimension, or of their flat views, which are padded, too.
struct SliceExchange {
  std::int64_t n = 1, share = 1, slices = 1;  ///< slices: of what the n ranks have together
  std::int64_t slice = 1, part = 1;           ///< elements of one, and of a rank's part of it
  bool gathers = false;                       ///< from parts to slices
  int bytes = 4;

  constexpr SliceExchange(const GraphView& g, const Node& node, const Mesh& mesh) {
    const Transition& t = node.transition;
    gathers = t.to.alone;
    const int whole = gathers ? int{node.result} : node.operands[0],
              parts = gathers ? node.operands[0] : int{node.result};
    const LocalPart of_whole = local_part(g.value(whole).type.layout, mesh),
                    of_parts = local_part(g.value(parts).type.layout, mesh);
    n = mesh.extent(t.axes);
    share = of_whole.size[0];
    slice = of_whole.each;
    slices = of_parts.size[0];
    for (int d = 1; d < of_parts.size.size(); ++d) part *= of_parts.size[d];
    bytes = bytes_of(g.value(whole).type.dtype);
  }
  /// Elements that each rank sends and takes, with padding.
  constexpr std::int64_t elements() const { return n * share * part; }
  constexpr bool pads_slices() const { return n * share != slices; }
  constexpr bool pads_parts() const { return n * part != slice; }
  constexpr std::int64_t padded() const { return aligned(elements() * bytes); }
  /// For what is padded before, what is brought together, and what is padded behind.
  constexpr std::int64_t room() const { return ((pads_slices() ? 1 : 0) + (pads_parts() ? 1 : 0) + 1) * padded(); }
};
/// Whether a move is one.
constexpr bool exchanges_slices(const Transition& t) {
  return t.collective == Collective::all_to_all && (t.from.alone || t.to.alone);
}

/// Bytes that a collective needs beside its operand and result, to bring slices of an inner dimension together.
constexpr std::int64_t packing_bytes(const GraphView& g, const Node& node, const Mesh& mesh) {
  const Transition& t = node.transition;
  const std::int64_t before = local_bytes(g.value(node.operands[0]).type, mesh),
                     after = local_bytes(g.value(node.result).type, mesh);
  if (exchanges_slices(t)) return SliceExchange(g, node, mesh).room();
  if (t.from.flat || t.to.flat) return communicates(t.collective) ? FlatExchange(g, node, mesh).room() : 0;
  switch (t.collective) {
    case Collective::all_gather: return t.from.dim == 0 ? 0 : after;
    case Collective::reduce_scatter: return t.to.dim == 0 ? 0 : before;
    case Collective::all_to_all: return 2 * aligned(before);
    default: return 0;
  }
}

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
    for (const Event& e : events)
      each_node(g, e, [&](int n) {
        const Node& node = g.node(n);
        for (int r = 0; r < node.results; ++r) alive[node.result + r] = true;
        for (const int o : node.operands)
          for (int v = before_aliases(g, mesh, o);; v = before_aliases(g, mesh, g.maker(v).operands[0])) {
            alive[v] = true;
            if (!g.maker(v).is(Structural::layer)) break;  // else with a slice its stack
          }
        if (n != e.node) pass_on(node, readers_);
      });
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
    }
    for (const int n : g.order) {
      const Node& node = g.node(n);
      for (int r = 0; r < node.results; ++r) place(node, r, node.result + r, alive);
    }
  }

  /// The stack of whose slices iterations make another in place, by an update, or as nothing moves; or -1.
  constexpr int filled_in_place(int inside) const {
    int root = before_aliases(g, mesh, inside);
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
      } else {
        own(value, bytes(value), 1, node.region);
      }
    }
  }

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
    for (const int v : g.outputs) touch(allocation_of[v], end, 0);
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
  Vector<int> readers_{};     ///< per value
  Vector<bool> ahead_{};      ///< per node: a collective that iterations start for the next
  Vector<int> replaces_{};    ///< per value that is gathered in the place of a member: the member's; or -1
  Kept kept_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::Memory;
}  // namespace parallel
