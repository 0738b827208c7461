// A process of thread ranks measured apart: it grows by what its plan accounts for, 2 % and 2 MiB a rank.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <parallel/communicator/threads.hpp>

#include "growth.hpp"

namespace growth {

/// What f returns in a process of its own, which has the pages of this one and counts from there.
template <class F>
std::int64_t apart(F f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::int64_t result = -1;
    map_code();  // which a child has not of its parent
    try {
      result = f();
    } catch (...) {
    }
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  std::int64_t result = -1;
  const bool came = read(ends[0], &result, sizeof result) == sizeof result;
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  return came ? result : -1;
}

/// Runs three steps of a program on a mesh in a process of its own and checks by how much that grows.
inline void check(const char* name, const Graph& graph, const Mesh& mesh) {
  const OwnedPlan plan = derive(graph, mesh, {}, {});
  const std::vector<float> x = input_of(plan);
  const int ranks = mesh.ranks();
  const std::int64_t grown = apart([&] {
    const std::int64_t before = status("VmRSS:");
    run_threads(ranks, [&](Threads& world) { run(plan, world, x, 3); });
    return status("VmHWM:") - before;
  });
  compare(name, mesh, grown, ranks * plan->process_memory(), ranks);
}

}  // namespace growth
