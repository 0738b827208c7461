// A process under MPI grows by what its plan accounts for, 2 % and 2 MiB: by terms of sums where ranks call MPI for them,
// and not where they share memory. What MPI itself takes for such exchanges it has taken before: for the same program,
// whose memory is given back, and the terms' with its Mpi.
#pragma once
#include <parallel/communicator/mpi.hpp>

#include "growth.hpp"

namespace growth {

/// Runs three steps of a program on the ranks of a mesh and checks by how much this process grows at most, which it
/// returns.
inline std::int64_t check(const char* name, const Graph& graph, const Mesh& mesh, const MpiOptions& options = {}) {
  const OwnedPlan plan = derive(graph, mesh, {}, {});
  const std::vector<float> x = input_of(plan);
  {
    Mpi before(options);
    run(plan, before, x, 1);
  }
  malloc_trim(0);
  Mpi world(options);
  count_from_here();
  const std::int64_t before = status("VmRSS:");
  run(plan, world, x, 3);
  const std::int64_t grown = status("VmHWM:") - before;
  compare(name, mesh, grown, plan->process_memory() + (options.shared_memory ? 0 : plan->terms_of_sums()), 1);
  return grown;
}

}  // namespace growth
