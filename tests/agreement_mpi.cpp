// Threads and MPI give the same bits: every process runs the program with its peers over MPI, then alone with thread
// ranks.
#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

using Model = models::Gpt<float, models::multiples_of(12)>;
using Step = Training<Model, KeepGradients, Model::Tokens, Model::Tokens>;

void check(const Mesh& mesh) {
  Mpi world;
  REQUIRE(world.size() == mesh.ranks());
  const OwnedPlan plan = derive<Step>(mesh);
  const auto tokens = program::numbers<int>(144, 1, Model::vocabulary),
             targets = program::numbers<int>(144, 2, Model::vocabulary);
  const auto feed = [&](auto& executor, under_test::Parameters&) {
    executor.input(0, tokens);
    executor.input(1, targets);
  };
  const std::vector<lockstep::Array> threads = program::outputs(*plan, feed);
  std::vector<lockstep::Array> mine = threads;
  for (auto& output : mine)
    for (double& x : output.data) x = 1e30;
  program::run_rank(*plan, world, feed, mine);  // overwrites what this rank holds
  std::int64_t held = 0;
  for (std::size_t o = 0; o < mine.size(); ++o)
    for (std::size_t i = 0; i < mine[o].data.size(); ++i)
      if (mine[o].data[i] != 1e30) {
        ++held;
        CHECK(mine[o].data[i] == threads[o].data[i]);
      }
  CHECK(held > 3000);
}

}  // namespace

TEST_CASE("threads and MPI agree bit for bit") {
  const int n = Mpi().size();
  for (const Axis* axis : {&data, &tensor, &sequence}) {
    INFO(axis->name);
    check(Mesh{Extent(axis, n)});
  }
  if (n == 4) check(Mesh{data = 2, tensor = 2});
}

TEST_CASE("what is excepted on one rank alone is told as that") {
  Mpi world;
  if (world.size() == 1) return;
  if (world.rank() == 1) ::setenv("PARALLEL_MAY_DIFFER", "text", 1);
  std::string sentence;
  try {
    agree(world, {fact("version", std::to_string(world.rank())), fact("text", "alike")});
  } catch (const Mismatch& error) {
    sentence = error.what();
  }
  ::unsetenv("PARALLEL_MAY_DIFFER");
  const char* const others = world.size() == 2 ? "rank 0" : world.size() == 3 ? "ranks 0, 2" : "ranks 0, 2, 3";
  CHECK(sentence.find(std::string("PARALLEL_MAY_DIFFER names text on rank 1 and not on ") + others +
                      "; set it on all ranks alike, as by mpirun -x") != std::string::npos);
}
