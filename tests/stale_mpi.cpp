// Gradients of older parameters over MPI, through memory that the ranks share and by MPI's calls: one server, several,
// and pulls that are on their way for the whole step.
#include <parallel/communicator/mpi.hpp>

#include "stale.hpp"

using namespace stale;

namespace {

template <class Program>
void check(Mpi& world, const char* way, const Left& defined) {
  INFO(way);
  Left left;
  train<Program>(world, Mesh{data = world.size()}, left);
  CHECK(apart(left, defined, true) < 1e-12);
}

}  // namespace

TEST_CASE("it is its definition") {
  using Whole = NetOf<Layers<layers, BlockAt<>>>;
  using By = Stale<2, Momentum>;
  const Left defined = simulated(initial(), 2);
  for (const bool shared : {true, false}) {
    Mpi world({.shared_memory = shared});
    check<AllStored<Step<Whole, By>, Stored<data, At<0>>>>(world, "one server", defined);
    check<AllStored<Step<Whole, By>, Stored<data, At<0>, Zero::states>>>(world, "states", defined);
    check<Step<Spread, By>>(world, "several servers", defined);
  }
}
