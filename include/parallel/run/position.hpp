// Where a rank is in its step, and with it where values lie: the iterations of loops, and of a pipeline the part of a
// stage's work.
#pragma once
#include <vector>

#include <parallel/device/kernel.hpp>
#include <parallel/plan/check.hpp>
#include <parallel/plan/taking_part.hpp>
#include <parallel/plan/unrolled.hpp>

namespace parallel::internals {

class Position {
 public:
  Position(const Plan& plan, int rank)
      : plan_(plan),
        g_(plan.graph),
        rank_(rank),
        index_(plan.graph.regions.size()),
        iteration_(plan.graph.regions.size(), -1) {}

  /// What follows is an iteration of a region.
  void iterate(int r, int iteration) {
    const Region& region = g_.region(r);
    iteration_[static_cast<std::size_t>(r)] = iteration;
    at(region.loop) =
        (region.reversed ? region.count - 1 - iteration : iteration) + (region.staged ? chunk_ * region.count : 0);
  }
  /// What follows is a slot of a stage's work.
  void work_on(const Slot& slot) {
    for (const Region& region : g_.regions)
      if (region.kind == RegionKind::micro_batches) at(region.loop) = slot.micro_batch;
    lane_ = slot.lane;
    chunk_ = g_.part(slot.part).chunk;
  }
  void leave(int r) {
    iteration_[static_cast<std::size_t>(r)] = -1;
    at(g_.region(r).loop) = 0;
  }
  /// Whether the last iteration of a region is gone through.
  bool is_last(int r) const { return iteration_[static_cast<std::size_t>(r)] + 1 == g_.region(r).count; }
  /// Calls f() as the next iteration of a region; before its loop, as the first. Not where there is none.
  template <class F>
  void ahead(int r, F f) {
    const int now = iteration_[static_cast<std::size_t>(r)];
    if (is_last(r)) return;
    iterate(r, now + 1);
    f();
    now < 0 ? leave(r) : iterate(r, now);
  }
  int index(int loop) const { return static_cast<int>(index_[static_cast<std::size_t>(loop)]); }
  int chunk() const { return chunk_; }

  /// The blocks of memory, by MemoryBlock.
  std::byte* blocks[memory_blocks]{};

  const Storage& storage(int value) const { return plan_.storage[static_cast<std::size_t>(value)]; }
  std::byte* address(int value) const { return address(storage(value)); }
  std::byte* address(const Storage& s) const {
    std::byte* base = blocks[static_cast<int>(s.block)] + s.offset + s.lane * lane_;
    if (s.stride == 0) return base;
    std::int64_t slot = index(s.loop);
    if (s.of_chunk) slot -= chunk_ * g_.region(s.loop).count;
    if (s.modulo > 0) {
      const Region& region = g_.region(s.region);
      slot = ((region.reversed ? region.count - 1 - slot : slot) + s.shift) % s.modulo;
    }
    return base + slot * s.stride;
  }
  /// This rank's part of a value, where it lies now; no address where the rank has nothing of it.
  View view(int value) const {
    const Type& type = g_.value(value).type;
    View v;
    v.dtype = type.dtype;
    const LocalPart part = local_part(type.layout, plan_.mesh, rank_);
    const int from = owner(g_, value, plan_.mesh, rank_);
    v.rank = part.size.size();
    for (int d = 0; d < v.rank; ++d) {
      const Dim& dim = type.layout.dims[d];
      v.size[d] = part.size[d];
      v.offset[d] = d == part.flat_from ? part.before : offset(dim, plan_.mesh, from);
      v.whole[d] = d == part.flat_from ? part.before + part.own : dim.size;
      const Standing stands = d == part.flat_from ? Standing() : standing(dim, plan_.mesh);
      v.order[d] = stands.order;
      v.ranks[d] = static_cast<int>(stands.ranks);
    }
    v.data = has_part(plan_, value, rank_) ? address(value) : nullptr;
    return v;
  }
  /// The same for who puts the ranks' parts together. Layers in chunks lie apart, so for them the first dimension
  /// stands in two: the chunk, and the layer within; each offset is then where the part begins.
  View part(int value) const {
    View v = view(value);
    const int chunks = v.rank > 0 ? chunks_of(g_, g_.value(value).type.layout.dims[0], plan_.mesh) : 1;
    if (chunks == 1) return v;
    for (int d = v.rank++; d > 0; --d) {
      v.size[d] = v.size[d - 1];
      v.offset[d] = v.offset[d - 1];
      v.whole[d] = v.whole[d - 1];
      v.order[d] = v.order[d - 1];
      v.ranks[d] = v.ranks[d - 1];
    }
    v.size[0] = v.whole[0] = chunks;
    v.offset[0] = 0;
    v.size[1] /= chunks;
    v.offset[1] /= chunks;
    v.whole[1] /= chunks;
    return v;
  }
  /// What is added to the index of a layer within its stage to count the layers of all stages; `staged`: the region
  /// that is shared out, or -1.
  int layers_before(int staged) const {
    if (plan_.mesh.cut.axis != nullptr && staged >= 0) return plan_.mesh.cut.before;
    return staged < 0 ? 0
                      : g_.region(staged).layers() * (plan_.mesh.here + (plan_.mesh.extent(g_.stages) - 1) * chunk_);
  }

 private:
  std::int64_t& at(int loop) { return index_[static_cast<std::size_t>(loop)]; }

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  std::vector<std::int64_t> index_;
  std::vector<int> iteration_;  // per region; -1: outside
  int lane_ = 0, chunk_ = 0;    // of the part of a stage's work
};

}  // namespace parallel::internals
