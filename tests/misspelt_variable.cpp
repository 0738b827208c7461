// A variable of the environment that nobody reads is told by the first rank, of one as of several.
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/run/executor.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

struct Model {
  Parameter<float, Shape<4>> w{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * w)); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 4>>>;

/// What a process says that makes two executors, with one more variable.
std::string said_with(const char* variable, const char* value, int ranks) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const char* read : {"PARALLEL_MAY_DIFFER", "PARALLEL_WATCH", "PARALLEL_CHECK", "PARALLEL_RECORD"})
      ::unsetenv(read);
    ::setenv(variable, value, 1);
    ::dup2(ends[1], 2);
    try {
      run_threads(ranks, [&](Threads& world) {
        const OwnedPlan plan = derive<Step>(Mesh{data = ranks});
        Parameters parameters(plan, world.rank(), 1);
        for (int i = 0; i < 2; ++i) Executor<Threads, Cpu>(plan, world, parameters);
      });
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return said;
}

}  // namespace

TEST_CASE("a misspelt variable is told once") {
  for (const int ranks : {1, 2}) {
    CHECK(said_with("PARALLEL_RECRD", "run", ranks) ==
          "parallel: nobody reads the variable PARALLEL_RECRD; PARALLEL_RECORD may be meant\n");
    CHECK(said_with("PARALLEL_CHECK", "finite", ranks) == "");
    CHECK(said_with("PARALLEL_OTHER", "1", ranks) == "");
  }
  CHECK(said_with("PARALLEL_MAY_DIFFER", "numerics", 2) ==
        "parallel: ranks are not compared in what PARALLEL_MAY_DIFFER names: numerics\n");
  CHECK(said_with("PARALLEL_MAY_DIFFER", "numerics", 1) == "");
}
