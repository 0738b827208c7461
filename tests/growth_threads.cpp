// A process of thread ranks grows by what its plan accounts for, 2 % and 2 MiB a rank: measured in a process of its own
// for each program.
#include "growth_apart.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

TEST_CASE("a process of thread ranks grows by its account") {
  if (!growth::counts) return;
  growth::prepare();
  growth::program([]<class Program>(const char* name) {
    const Graph graph = build<Program>();
    for (const Mesh& mesh : {Mesh{}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) growth::check(name, graph, mesh);
  });
}
