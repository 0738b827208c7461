// The same of a model whose parameters, gradients and states take a gigabyte, by each stage of ZeRO, and computed again.
#include "growth_apart.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
using Large = growth::Large;
}  // namespace

TEST_CASE("a process grows by what its plan says, by every stage of ZeRO") {
  if (!growth::counts) return;
  growth::prepare();
  const Mesh two{data = 2};
  growth::check("whole", build<Large>(), two);
  growth::check("stage 1", build<AllStored<Large, Stored<data, Zero::states>>>(), two);
  growth::check("stage 2", build<AllStored<Large, Stored<data, Zero::gradients>>>(), two);
  growth::check("stage 3", build<AllStored<Large, Stored<data>>>(), two);
  growth::check("stage 3, per step", build<AllStored<Large, Stored<data, Gathered::per_step>>>(), two);
  growth::check("stage 3, computed again", build<AllStored<growth::LargeAgain, Stored<data>>>(), two);
  growth::check("stage 3, on hosts", build<AllStored<Large, Stored<data>, Stored<host>>>(), two);
  // a budget that the whole model exceeds, and stage 3 keeps
  constexpr std::int64_t budget = 700'000'000;
  CHECK(derive<Large>(two)->peak_memory() > budget);
  growth::check("within a budget", build<Within<AllStored<Large, Stored<data>>, PeakMemory<budget>>>(), two);
  CHECK(derive<Within<AllStored<Large, Stored<data>>, PeakMemory<budget>>>(two)->peak_memory() <= budget);
}
