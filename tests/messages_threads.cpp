// Messages between threads: what arrives, who waits for whom, and what happens when the other end is wrong, late or
// gone.
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "message_cases.hpp"
#include "thread_runs.hpp"

using namespace thread_runs;

namespace {

std::vector<double> x(1 << 16), y(1 << 16);

Exchange send(int to, std::int64_t count = 5, DType dtype = DType::f32) {
  return {.kind = Collective::send, .in = x.data(), .count = count, .dtype = dtype, .label = "activation", .peer = to};
}
Exchange receive(int from, std::int64_t count = 5, DType dtype = DType::f32) {
  return {.kind = Collective::receive,
          .out = y.data(),
          .count = count,
          .dtype = dtype,
          .label = "activation",
          .peer = from};
}

}  // namespace

TEST_CASE("messages arrive, in order, whatever else is on its way") {
  for (const int n : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(n);
    all_right(n, [](Threads& t) { return messages::every_case(t, 5, 1500); });
  }
}

TEST_CASE("messages of several groups do not meet") {
  all_right(6, [](Threads& t) {
    Threads half = t.split(t.rank() % 2, -t.rank());
    return messages::every_case(half, 2, 400) + messages::every_case(t, 2, 400);
  });
}

TEST_CASE("a group of 64 ranks") {
  all_right(64, [](Threads& t) { return messages::ring(t, 2); });
}

TEST_CASE("a sender that waits late does not hold up the receiver, nor a receiver the sender") {
  for (const int first : {0, 1}) {
    std::atomic<bool> done = false;
    CHECK_NOTHROW(run_threads(
        2,
        [&](Threads& t) {
          const Ticket ticket = t.start(t.rank() == 0 ? send(1) : receive(0));
          t.barrier();  // both have started
          const auto patience = Clock::now() + 500ms;
          while (t.rank() != first && !done && Clock::now() < patience) std::this_thread::sleep_for(1ms);
          t.wait(ticket);
          done = true;
        },
        300ms));
  }
}

TEST_CASE("a send and a receive that differ") {
  std::vector<Seen> seen;
  for (const Exchange& other : {receive(0, 4), receive(0, 6), receive(0, 5, DType::i32)}) {
    const auto words = fails(3, seen, [&](Threads& t) {
      if (t.rank() == 0) exchange(t, send(1));
      if (t.rank() == 1) exchange(t, other);
      t.barrier();
    });
    CHECK(contains(words, "parallel::wait: a send and its receive differ; give both the same count and dtype: rank "));
    CHECK(contains(words, "rank 0 of 3 send of 5 f32 to rank 1 (activation)"));
    CHECK(contains(words, "rank 1 of 3 " + text(other)));
    CHECK(seen[2].peer_failed);
  }
}

TEST_CASE("the other end fails") {
  std::vector<Seen> seen;
  for (const Exchange& mine : {send(1), receive(1)}) {
    CHECK(fails(3, seen, [&](Threads& t) {
            if (t.rank() == 1) {
              std::this_thread::sleep_for(30ms);
              throw std::runtime_error("rank 1 is broken");
            }
            if (t.rank() == 0) exchange(t, mine);
          }) == "rank 1 is broken");
    CHECK(seen[0].words == "parallel::wait: rank 0 of 3 gave up " + text(mine) + ": rank 1 failed: rank 1 is broken");
  }
}

TEST_CASE("the other end fails when it has started") {
  std::vector<Seen> seen;
  for (const auto& [mine, other] : {std::pair{send(1), receive(0)}, std::pair{receive(1), send(0)}}) {
    const Exchange ends[] = {mine, other};
    CHECK(fails(2, seen, [&](Threads& t) {
            const Ticket ticket = t.start(ends[t.rank()]);
            t.barrier();
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            std::this_thread::sleep_for(30ms);
            t.wait(ticket);
          }) == "rank 1 is broken");
    CHECK(seen[0].words == "parallel::wait: rank 0 of 2 gave up " + text(mine) + ": rank 1 failed: rank 1 is broken");
  }
}

TEST_CASE("the other end's rank ends") {
  std::vector<Seen> seen;
  for (const Exchange& mine : {send(1), receive(1)})
    CHECK(fails(3, seen, [&](Threads& t) {
            if (t.rank() == 0) exchange(t, mine);
          }) == "parallel::wait: rank 1 of 3 ended without taking part in " + text(mine) + "; let it take part, too");
}

TEST_CASE("the other end never comes") {
  for (const Exchange& mine : {send(1), receive(1)}) {
    std::vector<int> missing;
    std::string words;
    std::atomic<bool> over = false;
    try {
      run_threads(
          4,
          [&](Threads& t) {
            Threads half = t.split(t.rank() % 2, 0);
            while (t.rank() != 0 && !over) std::this_thread::sleep_for(1ms);
            if (t.rank() != 0) return;
            try {
              exchange(half, mine);
            } catch (...) {
              over = true;
              throw;
            }
          },
          200ms);
    } catch (const Deadline& error) {
      words = error.what();
      missing = error.missing;
      CHECK(exit_code_of(error) == 75);
    }
    CHECK(missing == std::vector<int>{1});
    CHECK(words ==
          "parallel::wait: rank 0 of 2 waited 200 ms in " + text(mine) +
              " for rank 1 of 2 (rank 2 of the run); it hangs or calls something else, or the deadline is too short");
  }
}

TEST_CASE("an end that is never waited for") {
  std::vector<Seen> seen;
  for (const auto& [mine, other] : {std::pair{send(1), receive(0)}, std::pair{receive(1), send(0)}}) {
    const Exchange ends[] = {mine, other};
    CHECK(fails(2, seen, [&](Threads& t) {
            const Ticket ticket = t.start(ends[t.rank()]);
            if (t.rank() == 0) t.wait(ticket);
          }) == "parallel::run_threads: a rank ended with exchanges outstanding; wait for every start");
  }
}

TEST_CASE("a rank that leaves keeps its buffers until nobody touches them") {
  for (int run = 0; run < 16; ++run) {
    std::vector<Seen> seen;
    std::atomic<int> started = 0;
    const bool sender_leaves = run % 2 == 0;
    CHECK(fails(2, seen, [&](Threads& t) {
            std::vector<float> mine(1 << 22, 1.0f);  // gone as soon as the exception passes
            Threads pair = t.split(0, t.rank());
            const bool sends = t.rank() == 0;
            const Ticket ticket = pair.start({.kind = sends ? Collective::send : Collective::receive,
                                              .in = mine.data(),
                                              .out = mine.data(),
                                              .count = 1 << 22,
                                              .peer = 1 - t.rank()});
            ++started;
            if (sends == sender_leaves) {
              while (started < 2) std::this_thread::yield();
              std::this_thread::sleep_for(50us * (1 + run * run));  // now the other copies
              throw std::runtime_error("early");
            }
            pair.wait(ticket);
            pair.barrier();
          }) == "early");
  }
}

TEST_CASE("ranks that fail at random among messages leave no one behind") {
  for (int run = 0; run < 100; ++run) {
    const int n = 2 + run % 4, culprit = run % n, step = run * 7 % 23;
    std::vector<std::vector<float>> buffers(index(n), std::vector<float>(2 * 700));
    std::vector<Seen> seen;
    CHECK(fails(n, seen, [&](Threads& t) {
            float* mine = buffers[index(t.rank())].data();
            Threads ring = t.split(0, t.rank());
            for (int i = 0;; ++i) {
              const Ticket in =
                  ring.start({.kind = Collective::receive, .out = mine, .count = 700, .peer = (t.rank() + n - 1) % n});
              if (t.rank() == culprit && i == step) throw std::runtime_error("at random");
              const Ticket out =
                  ring.start({.kind = Collective::send, .in = mine + 700, .count = 700, .peer = (t.rank() + 1) % n});
              if (i % 2 == 0) {
                ring.wait(in);
                ring.wait(out);
              } else {
                ring.wait(out);
                ring.wait(in);
              }
            }
          }) == "at random");
  }
}
