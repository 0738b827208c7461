// Which weights a step multiplies by several times, for a device that keeps them as its products read them.
#pragma once
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

/// The right operand of forward and backward products that are alike: a parameter, as the optimizer, whose own products
/// are left out, has not changed it yet.
struct PackedOnce {
  Storage storage{};  ///< where it lies
  account::Extents product{};
  std::int64_t slots = 1;  ///< of how many layers, at equal distances, one is meant
  std::int64_t uses = 0;   ///< how often a step multiplies by each
  std::int64_t bytes = 0;  ///< that each takes packed

  constexpr bool operator==(const PackedOnce& other) const {
    const auto same = [](const auto& a, const auto& b) {
      bool all = a.size() == b.size();
      for (int i = 0; all && i < a.size(); ++i) all = a[i] == b[i];
      return all;
    };
    bool all = bytes == other.bytes && bytes > 0 && storage == other.storage && same(product.ints, other.product.ints);
    for (int o = 0; o < product.operands.size(); ++o)
      all = all && same(product.operands[o].size, other.product.operands[o].size);
    return all;
  }
};

/// What a node multiplies by, where it may be kept; else without bytes.
constexpr PackedOnce packed_once(const Plan& plan, const Node& node, const DeviceAccount& device) {
  if (device.packed == nullptr || plan.graph.stashed || node.phase == Phase::optimizer || node.operands.size() != 2)
    return {};
  const Storage& s = plan.storage[static_cast<std::size_t>(node.operands[1])];
  if (s.block != MemoryBlock::parameter || s.modulo > 0 || s.lane > 0) return {};
  PackedOnce p{.storage = s, .product = plan.extents_of(node), .uses = 1};
  p.bytes = device.packed(p.product);
  for (int r = node.region; r >= 0; r = plan.graph.region(r).parent) {
    const Region& region = plan.graph.region(r);
    if (s.stride != 0 && region.loop == s.loop)
      p.slots = region.count * (region.staged ? plan.graph.chunks : 1);
    else
      p.uses *= region.count;
  }
  return p;
}
/// All weights of a plan that a step multiplies by more than once.
constexpr Vector<PackedOnce> packed_once(const Plan& plan, const DeviceAccount& device) {
  Vector<PackedOnce> all, several;
  for (const Event& e : plan.events)
    if (e.kind == EventKind::compute)
      each_node(plan.graph, e, [&](int n) {
        const PackedOnce found = packed_once(plan, plan.graph.node(n), device);
        if (found.bytes == 0) return;
        for (PackedOnce& p : all)
          if (p == found) return static_cast<void>(p.uses += found.uses);
        all.push_back(found);
      });
  for (const PackedOnce& p : all)
    if (p.uses > 1) several.push_back(p);
  return several;
}
/// Bytes that a rank on a CPU takes beside its account where it keeps them, `Cpu{.packs_once = true}`, and Eigen
/// multiplies.
constexpr std::int64_t packed_weights(const Plan& plan, const DeviceAccount& device = account::on_cpu) {
  std::int64_t bytes = 0;
  for (const PackedOnce& p : packed_once(plan, device)) bytes += p.slots * p.bytes;
  return bytes;
}

}  // namespace parallel::internals

namespace parallel {
using internals::packed_weights;
}  // namespace parallel
