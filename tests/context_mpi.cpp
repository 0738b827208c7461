// A ring of processes, through memory that they share and by MPI's calls: the bits of a ring of threads.
#include <parallel/communicator/mpi.hpp>

#include "context.hpp"

using namespace context_parallel;

namespace {

template <class Step>
void check(const Mesh& mesh, bool shared) {
  Mpi world({.shared_memory = shared});
  const OwnedPlan plan = derive<Step>(mesh);
  const auto give = [](auto& executor, auto&) { feed<double>(executor); };
  const std::vector<Array> threads = program::outputs(*plan, give);
  std::vector<Array> mine = threads;
  for (Array& output : mine)
    for (double& x : output.data) x = 1e30;
  program::run_rank(*plan, world, give, mine);  // overwrites what this rank holds
  std::int64_t held = 0, differ = 0;
  for (std::size_t o = 0; o < mine.size(); ++o)
    for (std::size_t i = 0; i < mine[o].data.size(); ++i)
      if (mine[o].data[i] != 1e30) {
        ++held;
        differ += mine[o].data[i] != threads[o].data[i];
      }
  CHECK(held > 5000);
  CHECK(differ == 0);
}

}  // namespace

TEST_CASE("keys and values come around a ring of processes") {
  const int n = Mpi().size();
  for (const bool shared : {true, false}) {
    check<All<Context::ring, OnSequence>::Step>(Mesh{sequence = n}, shared);
    check<All<Context::ring, InZigzag>::Step>(Mesh{sequence = n}, shared);
    if (n == 4) check<All<Context::ring, OnSequence>::Step>(Mesh{data = 2, sequence = 2}, shared);
  }
}
