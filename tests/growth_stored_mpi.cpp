// A rank's own process, under MPI: of a model whose parameters, gradients and states take a gigabyte, by each stage of
// ZeRO. What a budget refuses without (tests/refusals/over_memory.whole.cpp) trains by stage 3 within it.
#include "growth_under_mpi.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
using Large = growth::Large;
template <auto... word>
using Sharded = AllStored<Large, Stored<data, word...>>;
constexpr std::int64_t budget = 700'000'000;
using Limited = Within<Sharded<>, PeakMemory<budget>>;
constexpr Mesh two{data = 2};
static_assert(plan<Limited, two>.peak_memory() <= budget);
}  // namespace

TEST_CASE("a rank's process grows by what its plan says, by every stage of ZeRO") {
  if (!growth::counts) return;
  growth::prepare();
  CHECK(growth::check("whole", build<Large>(), two) > budget);
  growth::check("stage 1", build<Sharded<Zero::states>>(), two);
  growth::check("stage 2", build<Sharded<Zero::gradients>>(), two);
  growth::check("stage 3, per pass", build<Sharded<Gathered::per_pass>>(), two);
  growth::check("stage 3, per step", build<Sharded<Gathered::per_step>>(), two);
  growth::check("stage 3, computed again", build<AllStored<growth::LargeAgain, Stored<data>>>(), two);
  growth::check("stage 3, on hosts", build<AllStored<Large, Stored<data>, Stored<host>>>(), two);
  CHECK(growth::check("stage 3, within a budget", build<Limited>(), two) <= budget);
}
