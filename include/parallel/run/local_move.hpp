// The kernels of moves that send nothing.
#pragma once
#include <parallel/device/device.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/prepare_exchange.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals {

/// Of a slice of a flat view: tells the kernel where in it the slice lies.
inline void flatten(Call& call, const Node& node, const Plan& plan, int rank) {
  const FlatExchange flat(plan.graph, node, plan.mesh);
  call.operands[0] = flat_view(flat, call.operands[0], flat.whole);
  call.results[0] =
      flat_view(flat, call.results[0], flat.share, plan.mesh.coordinate(rank, node.transition.axes) * flat.share);
}

/// None where ranks would have to send. `chunk`: of a stage's layers, where the move is part of the work on one; else
/// -1.
template <Device D>
Kernel local_move(const Transition& t, const Plan& plan, int rank, int chunk) {
  const Kernel copy = D::copy, zero = D::zero;
  const int extent = plan.mesh.extent(t.axes);
  if (t.collective == Collective::retype || t.along != 0 || extent == 1) return copy;
  switch (t.collective) {
    case Collective::zero_pad:
      if (t.from.kind == PlacementKind::at) {  // the first that holds it has the term
        const int first = first_holder(t.from, extent);
        const bool in_chunk = chunk < 0 || !t.axes.contains(plan.graph.stages) ||
                              chunk == (first == 0 ? 0 : plan.graph.schedule->chunks - 1);
        return first == plan.mesh.coordinate(rank, t.axes) && in_chunk ? copy : zero;
      }
      [[fallthrough]];
    case Collective::slice: return D::copy_overlap;
    case Collective::mask: return plan.mesh.coordinate(rank, t.axes) == 0 ? copy : zero;
    default: return copy;  // a drop, a send to where the value is: where the result has a place of its own
  }
}

}  // namespace parallel::internals
