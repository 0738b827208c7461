// Ranks as threads: every collective against its definition, and what happens when a rank fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>

#include "message_cases.hpp"
#include "thread_runs.hpp"

// Sanitizers bring a `new` of their own; without them every allocation of a thread is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#define COUNTS_ALLOCATIONS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define COUNTS_ALLOCATIONS 1
#endif

#if COUNTS_ALLOCATIONS
namespace {
thread_local std::int64_t allocations = 0;
}  // namespace
[[gnu::noinline]] void* operator new(std::size_t size) {  // inlined, g++ 12 would warn of a free that matches no new
  ++allocations;
  if (void* p = std::malloc(size > 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

using namespace parallel;
using namespace parallel::internals;
using namespace std::chrono_literals;
using cases::index;
using namespace thread_runs;

namespace {

static_assert(max_outstanding == 512 && max_messages == 64);
constexpr int rank_counts[] = {1, 2, 3, 4, 5, 8};

}  // namespace

TEST_CASE("every collective is its definition, bit for bit") {
  for (const int n : rank_counts) {
    CAPTURE(n);
    all_right(n, [](Threads& t) { return cases::every_collective(t); });
  }
}

TEST_CASE("large messages, which are written past the caches, in every alignment") {
  for (const int n : {2, 3}) {
    all_right(n, [](Threads& t) {
      for (const std::int64_t skew : {0, 1, 4})
        for (const bool in_place : {false, true}) {
          cases::Case<float> one(Collective::all_reduce, (3 << 20) + 5, DType::f32, false, 0, in_place, t.rank(),
                                 t.size(), skew);
          exchange(t, one.exchange);
          if (const auto wrong = one.wrong(); !wrong.empty()) return wrong;
        }
      return std::string();
    });
  }
}

TEST_CASE("sums into the caches and past them") {
  for (const int n : {2, 3}) all_right(n, [](Threads& t) { return cases::both_ways(t, 8); });
}

TEST_CASE("exchanges overlap") {
  for (const int n : rank_counts) {
    CAPTURE(n);
    all_right(n, [](Threads& t) { return cases::overlapping(t, 3); });
    all_right(n, [](Threads& t) { return cases::alternating(t); });
  }
}

TEST_CASE("groups on a mesh") {
  using namespace parallel::axes;
  all_right(8, [](Threads& t) { return cases::groups_of(t, Mesh{data = 2, tensor = 2, sequence = 2}); });
  all_right(6, [](Threads& t) { return cases::groups_of(t, Mesh{data = 3, tensor = 2}); });
}

TEST_CASE("split orders a group by key, and a group can be split again") {
  all_right(5, [](Threads& t) {
    Threads odd = t.split(t.rank() % 2, -t.rank());
    const int wanted[] = {2, 1, 1, 0, 0};
    if (odd.rank() != wanted[t.rank()] || odd.size() != (t.rank() % 2 == 1 ? 2 : 3)) return std::string("the order");
    Threads alone = odd.split(odd.rank(), 0);
    if (alone.size() != 1 || alone.rank() != 0) return std::string("the second split");
    return cases::every_collective(odd) + cases::every_collective(alone);
  });
}

TEST_CASE("refusals and records") {
  for (const int n : {1, 3}) {
    all_right(n, [](Threads& t) { return cases::refusals(t); });
    all_right(n, [](Threads& t) { return cases::records(t); });
  }
  CHECK_THROWS_WITH(run_threads(2, [](Threads& t) { t.split(-1, 0); }),
                    "parallel::split: the color is negative; count colors from 0");
  CHECK_THROWS_AS(run_threads(0, [](Threads&) {}), Failure);
}

#if COUNTS_ALLOCATIONS
TEST_CASE("nothing is allocated in steady state") {
  all_right(3, [](Threads& t) {
    std::vector<float> a(3000, 1.0f), b(3000), c(700), d(700);
    std::vector<Record> records;
    records.reserve(1000);
    t.record(&records);
    std::int64_t before = 0;
    for (int i = 0; i < 100; ++i) {
      const Ticket first = t.start({Collective::all_reduce, a.data(), b.data(), 3000, DType::f32, false, 0, "first"});
      const Ticket second = t.start({Collective::all_gather, a.data() + 1000, a.data() + 2997, 3});
      const int next = (t.rank() + 1) % 3, previous = (t.rank() + 2) % 3;
      const Ticket sent = t.start({.kind = Collective::send, .in = c.data(), .count = 700, .peer = next});
      t.wait(t.start({.kind = Collective::receive, .out = d.data(), .count = 700, .peer = previous}));
      t.wait(second);
      t.wait(first);
      t.wait(sent);
      t.barrier();
      if (i == 0) before = allocations;  // a channel is made when first used
    }
    return allocations == before ? "" : std::to_string(allocations - before) + " allocations";
  });
}
#endif

TEST_CASE("a barrier holds everyone back") {
  std::atomic<int> count = 0;
  all_right(4, [&](Threads& t) {
    for (int i = 1; i <= 200; ++i) {
      ++count;
      t.barrier();
      if (count != 4 * i) return std::string("a rank went ahead");
      t.barrier();
    }
    return std::string();
  });
}

TEST_CASE("a rank that throws ends the waits of all others") {
  std::vector<float> a(4000), b(4000);
  std::vector<Seen> seen;
  const auto everyone = [&](int n, int culprit) {
    for (int r = 0; r < n; ++r) {
      CAPTURE(r);
      CHECK(seen[index(r)].peer_failed == (r != culprit));
      if (r != culprit) CHECK(contains(seen[index(r)].words, "rank 1 failed: rank 1 is broken"));
    }
  };
  const auto sum_of = [&](Threads& t, int slot) -> Exchange {
    return {Collective::all_reduce,
            a.data() + 100 * t.rank() + slot,
            b.data() + 100 * t.rank() + slot,
            1,
            DType::f32,
            false,
            0,
            "gradient"};
  };

  SUBCASE("in wait") {
    CHECK(fails(4, seen, [&](Threads& t) {
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            exchange(t, sum_of(t, 0));
          }) == "rank 1 is broken");
    everyone(4, 1);
    CHECK(contains(seen[0].words, "parallel::wait: rank 0 of 4 gave up all_reduce of 1 f32 (gradient): rank 1 failed"));
  }
  SUBCASE("in wait, asleep") {
    CHECK(fails(4, seen, [&](Threads& t) {
            if (t.rank() == 1) {
              std::this_thread::sleep_for(60ms);
              throw std::runtime_error("rank 1 is broken");
            }
            exchange(t, sum_of(t, 0));
          }) == "rank 1 is broken");
    everyone(4, 1);
  }
  SUBCASE("in barrier") {
    CHECK(fails(3, seen, [&](Threads& t) {
            t.barrier();
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            t.barrier();
          }) == "rank 1 is broken");
    everyone(3, 1);
    CHECK(contains(seen[2].words, "gave up barrier"));
  }
  SUBCASE("in start") {
    std::atomic<bool> thrown = false;
    CHECK(fails(4, seen, [&](Threads& t) {
            if (t.rank() == 1) {
              thrown = true;
              throw std::runtime_error("rank 1 is broken");
            }
            while (!thrown) std::this_thread::yield();
            std::this_thread::sleep_for(20ms);
            t.start(sum_of(t, 0));
          }) == "rank 1 is broken");
    everyone(4, 1);
  }
  SUBCASE("in a group of one") {
    std::atomic<bool> thrown = false;
    CHECK(fails(2, seen, [&](Threads& t) {
            Threads alone = t.split(t.rank(), 0);
            if (t.rank() == 1) {
              thrown = true;
              throw std::runtime_error("rank 1 is broken");
            }
            while (!thrown) std::this_thread::yield();
            std::this_thread::sleep_for(20ms);
            alone.barrier();
          }) == "rank 1 is broken");
    everyone(2, 1);
  }
  SUBCASE("in a group that the culprit is not in") {
    CHECK(fails(4, seen, [&](Threads& t) {
            Threads pair = t.split(t.rank() / 2, t.rank());
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            if (t.rank() == 3) t.barrier();
            exchange(pair, sum_of(t, 0));
          }) == "rank 1 is broken");
    everyone(4, 1);
  }
  SUBCASE("between start and wait") {
    CHECK(fails(4, seen, [&](Threads& t) {
            const Ticket ticket = t.start(sum_of(t, 0));
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            t.wait(ticket);
            t.barrier();
          }) == "rank 1 is broken");
    everyone(4, 1);
  }
  SUBCASE("in split") {
    CHECK(fails(3, seen, [&](Threads& t) {
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            t.split(0, 0);
          }) == "rank 1 is broken");
    everyone(3, 1);
  }
  SUBCASE("something that is no std::exception") {
    CHECK_THROWS_AS(run_threads(3,
                                [&](Threads& t) {
                                  if (t.rank() == 2) throw 42;
                                  t.barrier();
                                }),
                    int);
  }
  SUBCASE("an exchange that is refused on one rank") {
    CHECK(contains(fails(3, seen,
                         [&](Threads& t) {
                           Exchange e = sum_of(t, 0);
                           if (t.rank() == 1) e.count = -1;
                           exchange(t, e);
                         }),
                   "the count is negative"));
    CHECK(seen[0].peer_failed);
  }
  SUBCASE("the first of several") {
    CHECK(fails(4, seen, [&](Threads& t) {
            if (t.rank() == 1) throw std::runtime_error("rank 1 is broken");
            try {
              t.barrier();
            } catch (const PeerFailed&) {
              throw std::runtime_error("a consequence");
            }
          }) == "rank 1 is broken");
  }
}

TEST_CASE("ranks that fail at random leave no one behind") {
  for (int run = 0; run < 150; ++run) {
    const int n = 2 + run % 4, culprit = run % n, step = run * 7 % 23;
    std::vector<std::vector<float>> buffers(index(n), std::vector<float>(2 * 700));
    std::vector<Seen> seen;
    CHECK(fails(n, seen, [&](Threads& t) {
            float* mine = buffers[index(t.rank())].data();
            Threads pair = t.split(t.rank() % 2, 0);
            for (int i = 0;; ++i) {
              const Ticket first = t.start({Collective::all_reduce, mine, mine, 700});
              if (t.rank() == culprit && i == step) throw std::runtime_error("at random");
              const Ticket second = pair.start({Collective::all_reduce, mine + 700, mine + 700, 700});
              t.wait(first);
              pair.wait(second);
              if (i % 5 == 0) t.barrier();
            }
          }) == "at random");
  }
}

TEST_CASE("a group that is left with exchanges outstanding keeps its buffers until nobody touches them") {
  for (int run = 0; run < 8; ++run) {
    std::vector<Seen> seen;
    std::atomic<int> started = 0;
    CHECK(fails(4, seen, [&](Threads& t) {
            std::vector<float> mine(1 << 22, 1.0f);  // gone as soon as the exception passes
            Threads all = t.split(0, t.rank());
            const Ticket ticket = all.start({Collective::all_reduce, mine.data(), mine.data(), 1 << 22});
            ++started;
            if (t.rank() == run % 4) {
              while (started < 4) std::this_thread::yield();
              std::this_thread::sleep_for(100us * (1 + run * run));  // now the others read and write all buffers
              throw std::runtime_error("early");
            }
            all.wait(ticket);
          }) == "early");
  }
}

TEST_CASE("a rank that ends while others need it") {
  std::vector<float> a(10), b(10);
  std::vector<Seen> seen;
  const auto words = fails(3, seen, [&](Threads& t) {
    if (t.rank() == 2) return;
    exchange(t, {Collective::all_reduce, &a[index(t.rank())], &b[index(t.rank())], 1, DType::f32, false, 0, "loss"});
  });
  CHECK(contains(words, "rank 2 of 3 ended without taking part in all_reduce of 1 f32 (loss)"));
  CHECK(contains(fails(2, seen,
                       [&](Threads& t) {
                         t.start({Collective::all_reduce, &a[index(t.rank())], &b[index(t.rank())], 1});
                       }),
                 "a rank ended with exchanges outstanding; wait for every start"));
}

TEST_CASE("ranks that call different collectives") {
  std::vector<float> a(100), b(100);
  std::vector<Seen> seen;
  const Exchange right{Collective::all_reduce, nullptr, nullptr, 6, DType::f32, false, 0, "loss"};
  const std::string line = std::to_string(__LINE__ - 1);
  std::vector<Exchange> others(6, right);
  others[0].kind = Collective::broadcast;
  others[1].count = 3;
  others[2].dtype = DType::i32;
  others[3].maximum = true;
  others[4].kind = Collective::all_gather;
  others[5].root = 1;
  for (const Exchange& other : others) {
    const auto words = fails(3, seen, [&](Threads& t) {
      Exchange e = t.rank() == 1 ? other : right;
      e.in = a.data() + 12 * t.rank();
      e.out = b.data() + 12 * t.rank();
      exchange(t, e);
    });
    CHECK(contains(
        words,
        "parallel::wait: the ranks of a group call different collectives; let all call the same in the same order: rank 0 of 3 "
        "all_reduce of 6 f32 (loss) of communicator_threads.cpp:" +
            line + ", rank 1 of 3 " + text(other) + " of communicator_threads.cpp:" + line +
            ", rank 2 of 3 all_reduce of 6 f32 (loss) of "));
  }
  CHECK(exit_code_of(Mismatch("")) == 76);
}

TEST_CASE("the deadline") {
  std::vector<float> a(10), b(10);
  // Some ranks arrive only when the others have given up.
  const auto late = [](int ranks, const std::vector<int>& late_ranks, auto prepare, auto wait) {
    std::atomic<bool> over = false;
    std::vector<int> missing;
    std::string words;
    int code = 0;
    try {
      run_threads(ranks, [&](Threads& t) {
        auto prepared = prepare(t);
        t.barrier();  // until here they have the usual time, as machines that are in use need it
        t.deadline(200ms);
        const bool is_late = std::find(late_ranks.begin(), late_ranks.end(), t.rank()) != late_ranks.end();
        while (is_late && !over) std::this_thread::sleep_for(1ms);
        try {
          wait(t, prepared);
        } catch (...) {
          over = true;
          throw;
        }
      });
    } catch (const Deadline& error) {
      missing = error.missing;
      words = error.what();
      code = exit_code_of(error);
    }
    CHECK(code == 75);
    return std::pair(words, missing);
  };
  const auto nothing = [](Threads&) { return 0; };

  SUBCASE("of an exchange") {
    const auto [words, missing] = late(4, {1, 3}, nothing, [&](Threads& t, int) {
      exchange(t,
               {Collective::all_reduce, &a[index(t.rank())], &b[index(t.rank())], 1, DType::f32, false, 0, "mlp.up"});
    });
    CHECK(missing == std::vector<int>{1, 3});
    CHECK(contains(
        words,
        "of 4 waited 200 ms in all_reduce of 1 f32 (mlp.up) for rank 1 of 4, rank 3 of 4; it hangs or calls something else"));
  }
  SUBCASE("of a barrier") {
    const auto [words, missing] = late(3, {0}, nothing, [](Threads& t, int) { t.barrier(); });
    CHECK(missing == std::vector<int>{0});
    CHECK(contains(words, "of 3 waited 200 ms in barrier for rank 0 of 3;"));
  }
  SUBCASE("of a rank that started and does not wait") {
    std::vector<float> in(300), out(300);
    const auto [words, missing] = late(
        3, {2},
        [&](Threads& t) {
          const auto own = 100 * index(t.rank());
          return t.start({Collective::all_reduce, &in[own], &out[own], 100, DType::f32, false, 0, "loss"});
        },
        [](Threads& t, Ticket ticket) { t.wait(ticket); });
    CHECK(missing == std::vector<int>{2});
    CHECK(contains(words, "in all_reduce of 100 f32 (loss) for rank 2 of 3;"));
  }
  SUBCASE("of a group, which names the ranks of the run") {
    const auto [words, missing] = late(
        4, {3}, [](Threads& t) { return t.split(t.rank() % 2, 0); }, [](Threads&, Threads& half) { half.barrier(); });
    CHECK(missing == std::vector<int>{1});
    CHECK(
        words ==
        "parallel::wait: rank 0 of 2 (rank 1 of the run) waited 200 ms in barrier for rank 1 of 2 (rank 3 of the run); it hangs or calls "
        "something "
        "else, or the deadline is too short");
  }
  SUBCASE("is extended by who needs it") {
    run_threads(
        2,
        [](Threads& t) {
          t.deadline(10s);
          if (t.rank() == 1) std::this_thread::sleep_for(300ms);
          t.barrier();
        },
        100ms);
  }
}

TEST_CASE("a small exchange waits for all to have started, and nothing else") {
  // Whoever is ahead goes round all places, and begins in none before the last reader of what stood there is done.
  constexpr int rounds = 3 * max_outstanding;
  std::atomic<int> wrong = 0;
  std::atomic<bool> passed = false;
  run_threads(3, [&](Threads& t) {
    const auto rank = static_cast<double>(t.rank());
    std::vector<double> in(rounds), out(rounds);
    std::vector<Ticket> tickets(rounds);
    const auto start = [&](std::size_t i) {
      in[i] = 10 * static_cast<double>(i) + rank;
      tickets[i] = t.start({Collective::all_reduce, &in[i], &out[i], 1, DType::f64});
      in[i] = -1;  // it has been brought
    };
    const auto wait = [&](std::size_t i) {
      t.wait(tickets[i]);
      if (out[i] != 30 * static_cast<double>(i) + 3) ++wrong;
    };
    if (t.rank() == 2) {
      for (std::size_t i = 0; i < max_outstanding; ++i) start(i);
      while (!passed) std::this_thread::sleep_for(1ms);
      for (std::size_t i = 0; i < rounds; ++i) {
        wait(i);
        if (i + max_outstanding < rounds) start(i + max_outstanding);
      }
    } else {
      for (std::size_t i = 0; i < rounds; ++i) {
        if (i == max_outstanding) passed = true;  // having waited for them all, while one waited for none
        start(i);
        wait(i);
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a rank that hangs ends the program") {
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(1);
    try {
      run_threads(
          3,
          [](Threads& t) {
            while (t.rank() == 1) std::this_thread::sleep_for(1s);
            t.barrier();
          },
          100ms);
    } catch (...) {
    }
    std::_Exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  CHECK(Clock::now() - start < 1500ms);
}
