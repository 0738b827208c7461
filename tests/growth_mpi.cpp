// A process under MPI grows by what its plan accounts for, terms of sums included, 2 % and 2 MiB. What MPI itself takes
// for such exchanges it has taken before: by the same program, whose memory is given back.
#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "growth.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

TEST_CASE("a process under MPI grows by its account") {
  if (!growth::counts) return;
  growth::prepare();
  Mpi world;
  std::vector<Mesh> meshes{Mesh{tensor = world.size()}};
  if (world.size() == 4) meshes.push_back(Mesh{data = 2, tensor = 2});
  growth::program([&]<class Program>(const char* name) {
    const Graph graph = build<Program>();
    for (const Mesh& mesh : meshes) {
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      const std::vector<float> x = growth::input_of(plan);
      growth::run(plan, world, x, 1, [] {});
      malloc_trim(0);
      world.barrier();
      const std::int64_t before = growth::status("VmRSS:");
      std::int64_t after = 0;
      growth::run(plan, world, x, 3, [&] { after = growth::status("VmRSS:"); });
      const std::int64_t grown = after - before, account = plan->process_memory() + plan->terms_of_sums();
      INFO(std::string(name) << " on " << text(mesh) << ": " << grown << " bytes, the account says " << account
                             << ", of it tensors " << plan->peak_memory());
      CHECK(grown - account <= growth::allowed(account, 1));
      CHECK(grown > account / 2);  // some of what was given back is still there
    }
  });
}
