// A signal that comes to one rank ends the loops of all at the same step, after a checkpoint.
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/run/stop_signals.hpp>

using namespace parallel;

namespace {
std::atomic<int> handled{0};
}  // namespace

TEST_CASE("all ranks leave at the same step, whichever of them it came to, and when") {
  for (const int signal : {SIGTERM, SIGUSR1})
    for (int at = 0; at < 5; ++at)
      for (int rank = 0; rank < 3; ++rank) {
        const StopSignals signals;
        std::vector<int> left(3, -1);
        run_threads(3, [&](Threads& world) {
          for (int step = 0; step < 1000; ++step) {
            if (step == at && world.rank() == rank) ::raise(signal);
            if (!signals.asked(world)) continue;
            left[static_cast<std::size_t>(world.rank())] = step;
            break;
          }
        });
        CHECK(left[0] >= at);
        CHECK(left == std::vector<int>(3, left[0]));
      }
}

TEST_CASE("before and after it signals do what they did, others always") {
  ::signal(SIGUSR1, [](int) { ++handled; });
  ::signal(SIGUSR2, [](int) { handled += 10; });
  {
    const StopSignals signals({SIGUSR1});
    ::raise(SIGUSR1);
    ::raise(SIGUSR2);
    CHECK(handled == 10);
    run_threads(1, [&](Threads& world) { CHECK(signals.asked(world)); });
  }
  ::raise(SIGUSR1);
  CHECK(handled == 11);
  const StopSignals anew;
  run_threads(2, [&](Threads& world) { CHECK(!anew.asked(world)); });
  ::signal(SIGUSR1, SIG_DFL);
  ::signal(SIGUSR2, SIG_DFL);
}
