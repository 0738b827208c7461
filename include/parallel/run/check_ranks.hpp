// Whether a rank can run a plan at all.
#pragma once
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/plan/stage.hpp>
#include <parallel/run/failure.hpp>

namespace parallel::internals {

/// Throws CannotRun where the ranks are not the mesh's, the plan is another stage's, or its schedule is none.
inline void check_ranks(const Plan& plan, int rank, int size) {
  const GraphView& g = plan.graph;
  if (size != plan.mesh.ranks())
    throw CannotRun("the mesh " + text(plan.mesh) + " has " + std::to_string(plan.mesh.ranks()) + " ranks, but " +
                    std::to_string(size) + " were started; start as many ranks as the mesh has");
  if (g.stages != nullptr && plan.mesh.here != plan.mesh.coordinate(rank, g.stages))
    throw CannotRun("rank " + std::to_string(rank) + " of " + text(plan.mesh) + " is on stage " +
                    std::to_string(plan.mesh.coordinate(rank, g.stages)) + ", but was given the plan of stage " +
                    std::to_string(plan.mesh.here) + "; derive<Program>(mesh, rank) makes each rank's own");
  if (const ScheduleRefusal refusal = check_schedule(g, plan.mesh)) throw CannotRun(text(refusal));
}

}  // namespace parallel::internals
