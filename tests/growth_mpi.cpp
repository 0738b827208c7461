// A process under MPI grows by its account: small programs, on every kind of mesh.
#include "growth_under_mpi.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

TEST_CASE("a process under MPI grows by its account") {
  if (!growth::counts) return;
  growth::prepare();
  const int ranks = Mpi().size();
  std::vector<Mesh> meshes{Mesh{tensor = ranks}};
  if (ranks == 4) meshes.push_back(Mesh{data = 2, tensor = 2});
  growth::program([&]<class Program>(const char* name) {
    const Graph graph = build<Program>();
    for (const Mesh& mesh : meshes) {
      growth::check(name, graph, mesh);
      growth::check(name, graph, mesh, {.shared_memory = false});
    }
  });
}
