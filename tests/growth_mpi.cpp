// A process under MPI grows by what its plan accounts for, terms of sums included, 2 % and 2 MiB. What MPI itself takes for such exchanges it has
// taken before: by the same program, whose memory is given back.
#include <doctest/doctest.h>
#include <malloc.h>

#include <parallel/communicator/mpi.hpp>

#include "growth.hpp"

using namespace parallel;
using namespace parallel::axes;

TEST_CASE("a process under MPI grows by its account") {
  Mpi world;
  std::vector<Mesh> meshes{Mesh{data = world.size()}, Mesh{tensor = world.size()}};
  if (world.size() == 4) meshes.push_back(Mesh{data = 2, tensor = 2});
  growth::program([&]<class Program>(const char* name) {
    const Graph graph = build<Program>();
    for (const Mesh& mesh : meshes) {
      if (std::string_view(name) == "attention" && mesh.extent(&data) > 2) continue;  // which does not divide its examples
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      const std::vector<float> x = growth::input_of(plan);
      growth::run(plan, world, x, 1, [] {});
      malloc_trim(0);
      world.barrier();
      const std::int64_t before = growth::status("VmRSS:");
      std::int64_t after = 0;
      growth::run(plan, world, x, 20, [&] { after = growth::status("VmRSS:"); });  // more steps than exchanges can be under way
      const std::int64_t grown = after - before, account = plan->process_memory() + plan->terms_of_sums();
      INFO(std::string(name) << " on " << text(mesh) << ": " << grown << " bytes, the account says " << account << ", of it tensors " << plan->peak_memory());
      CHECK(grown - account <= growth::allowed(account, 1));
      CHECK(grown > account * 9 / 10);
      MESSAGE(std::string(name) << " on " << text(mesh) << ": account " << account << ", beyond " << grown - account);
    }
  });
}
