// The kernels of moves that send nothing.
#pragma once
#include <parallel/device/kernel.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel {

/// None where ranks would have to send. `chunk`: of a stage's layers, where the move is part of the work on one; else -1.
template <class Device>
Kernel local_move(const Transition& t, const Plan& plan, int rank, int chunk) {
  const Kernel copy = [](const Call& c) { Device::copy(c.results[0], c.operands[0]); }, zero = [](const Call& c) { Device::zero(c.results[0]); };
  const int extent = plan.mesh.extent(t.axes);
  if (t.collective == Collective::retype || t.along != 0 || extent == 1) return copy;
  switch (t.collective) {
    case Collective::zero_pad:
      if (t.from.kind == PlacementKind::at) {  // the first that holds it has the term
        int first = 0;
        while (!holds(t.from, first, extent)) ++first;
        const bool in_chunk = chunk < 0 || chunk == (first == 0 ? 0 : plan.graph.schedule->chunks - 1);
        return first == plan.mesh.coordinate(rank, t.axes) && in_chunk ? copy : zero;
      }
      [[fallthrough]];
    case Collective::slice: return [](const Call& c) { Device::copy_overlap(c.operands[0], c.results[0]); };
    case Collective::mask: return plan.mesh.coordinate(rank, t.axes) == 0 ? copy : zero;
    default: return nullptr;
  }
}

}  // namespace parallel
