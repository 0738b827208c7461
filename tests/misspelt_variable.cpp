// A variable of the environment that nobody reads is told by the first rank, of one as of several.
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/threads.hpp>

using namespace parallel;

namespace {

/// What a process says whose ranks compare something, with one more variable.
std::string said_with(const char* variable, const char* value, int ranks) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(variable, value, 1);
    ::dup2(ends[1], 2);
    run_threads(ranks, [](Threads& world) {
      for (int i = 0; i < 2; ++i) agree(world, {fact("nothing", 1)});
    });
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
    CHECK(said_with("PARALLEL_WATCH", "loss", ranks) == "");
    CHECK(said_with("PARALLEL_OTHER", "1", ranks) == "");
  }
  CHECK(said_with("PARALLEL_MAY_DIFFER", "numerics", 2) ==
        "parallel: ranks are not compared in what PARALLEL_MAY_DIFFER names: numerics\n");
  CHECK(said_with("PARALLEL_MAY_DIFFER", "numerics", 1) == "");
}
