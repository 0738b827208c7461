// Values that only some ranks hold, over MPI: every move to them, from them and between them, through memory that the
// ranks share and by MPI's calls.
#include <parallel/communicator/mpi.hpp>

#include "at.hpp"

using namespace at_some;

TEST_CASE("every way of a parameter over two moves trains as on one rank") {
  for (const bool shared : {true, false}) {
    Mpi world({.shared_memory = shared});
    std::string wrong;
    int ways = 0;
    each_way([&](const std::vector<Placement>& placements) {
      const Graph graph = Course(placements).graph;
      const OwnedPlan plan = derive(Graph(graph), Mesh{some = world.size()}, {}, {});
      if (compared(trained(plan, world), alone(graph)).worst >= 1e-12) wrong += text_of(placements) + ";";
      ++ways;
    });
    CHECK(ways > 300);
    CHECK(wrong == "");
  }
}
