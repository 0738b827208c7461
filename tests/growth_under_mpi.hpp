// A process under MPI grows by what its plan accounts for, terms of sums included, 2 % and 2 MiB. What MPI itself takes
// for such exchanges it has taken before: by the same program, whose memory is given back.
#pragma once
#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "growth.hpp"

namespace growth {

/// Runs three steps of a program on the ranks of a mesh and checks by how much this process grows, which it returns.
inline std::int64_t check(const char* name, const Graph& graph, const Mesh& mesh, Mpi& world) {
  const OwnedPlan plan = derive(graph, mesh, {}, {});
  const std::vector<float> x = input_of(plan);
  run(plan, world, x, 1, [] {});
  malloc_trim(0);
  world.barrier();
  const std::int64_t before = status("VmRSS:");
  std::int64_t after = 0;
  run(plan, world, x, 3, [&] { after = status("VmRSS:"); });
  const std::int64_t grown = after - before, account = plan->process_memory() + plan->terms_of_sums();
  INFO(std::string(name) << " on " << text(mesh) << ": " << grown << " bytes, the account says " << account
                         << ", of it tensors " << plan->peak_memory());
  MESSAGE(std::string(name) << " on " << text(mesh) << ": " << static_cast<double>(grown) / 1e6
                            << " MB, the account says " << static_cast<double>(account) / 1e6);
  CHECK(grown - account <= allowed(account, 1));
  CHECK(grown > account / 2);  // some of what was given back is still there
  return grown;
}

}  // namespace growth
