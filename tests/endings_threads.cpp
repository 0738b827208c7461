// How runs of threads end where a rank does not do as the others do: the exit code, the sentence, and what is printed
// beside it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/run/failure.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace std::chrono_literals;

namespace {

std::chrono::milliseconds before_each_thread{0};

struct Ended {
  int code = -1;
  std::string words{};  ///< on the standard error
};

/// Runs f(), which returns an exit code, as a program of its own.
template <class F>
Ended program(F f) {
  std::FILE* file = std::tmpfile();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(file), 2);
    std::exit(guarded("program", f));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  Ended ended{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) ended.words += static_cast<char>(c);
  std::fclose(file);
  return ended;
}
template <class F>
Ended run(int ranks, F f, std::chrono::milliseconds deadline = 20s) {
  return program([&] {
    run_threads(ranks, f, deadline);
    return exit_code::done;
  });
}
bool contains(const std::string& all, const std::string& words) { return all.find(words) != std::string::npos; }
int count(const std::string& all, const std::string& words) {
  int n = 0;
  for (std::size_t at = 0; (at = all.find(words, at)) != std::string::npos; at += words.size()) ++n;
  return n;
}

void sum(Threads& world, const char* label = "") {
  float x = 1, y = 0;
  exchange(world, {.kind = Collective::all_reduce, .in = &x, .out = &y, .count = 1, .label = label});
}
[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(1s);
}

}  // namespace

// Threads are started as slowly as a test wants. A sanitizer has to know of each thread, so its own function stands
// before the system's.
extern "C" __attribute__((weak)) int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                                                                  void*);
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  static const auto create = __interceptor_pthread_create != nullptr
                                 ? __interceptor_pthread_create
                                 : reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (before_each_thread.count() > 0) std::this_thread::sleep_for(before_each_thread);
  return create(thread, attributes, start, argument);
}

TEST_CASE("any exception of a rank is one sentence, which names the rank, and a code") {
  const auto of = [](auto error, int code, const std::string& sentence) {
    const Ended ended = run(3, [&](Threads& world) {
      if (world.rank() == 1) throw error;
      sum(world);
    });
    CHECK(ended.code == code);
    CHECK(ended.words == "program: error: " + sentence + "\n");
  };
  of(std::runtime_error("the reader failed"), 70, "the reader failed (rank 1 of 3)");
  of(42, 70, "an exception that is no std::exception; throw one whose what() says what failed (rank 1 of 3)");
  of(std::bad_alloc(), 1, "out of memory; use a smaller model, a smaller batch or more ranks (rank 1 of 3)");
  of(Failure("the loss is nan", 1), 1, "the loss is nan (rank 1 of 3)");
  of(Failure("rank 1 has no text", 66), 66, "rank 1 has no text");
  of(Failure("give all, of which a rank takes its part", 70), 70,
     "give all, of which a rank takes its part (rank 1 of 3)");
}

TEST_CASE("an exception that no rank threw") {
  const Ended ended = program([]() -> int { throw 42; });
  CHECK(ended.code == 70);
  CHECK(ended.words ==
        "program: error: an exception that is no std::exception; throw one whose what() says what failed\n");
}

TEST_CASE("a rank that calls exit does not end the job with 0") {
  for (const int code : {0, 3}) {
    const Ended ended = run(3, [&](Threads& world) {
      sum(world);
      if (world.rank() == 2) std::exit(code);
      sum(world);
    });
    CHECK(ended.code == (code == 0 ? 70 : code));
    CHECK(ended.words ==
          "parallel: rank 2 of 3 called exit(" + std::to_string(code) +
              ") while ranks still run; return from the ranks' function, or throw; the job ends with exit code " +
              std::to_string(ended.code) + "\n");
  }
  const Ended last = run(2, [](Threads& world) {
    if (world.rank() == 0) std::this_thread::sleep_for(50ms);
    if (world.rank() == 0) std::exit(0);
  });
  CHECK(last.code == 70);
  const Ended after = program([] {
    run_threads(3, [](Threads& world) { sum(world); });
    std::exit(0);
    return 1;
  });
  CHECK(after.code == 0);
  CHECK(after.words == "");
}

TEST_CASE("a rank that hangs behind its last exchange ends the program, and is named") {
  const Ended ended = run(
      3,
      [](Threads& world) {
        sum(world, "loss");
        if (world.rank() == 1) hang();
      },
      200ms);
  CHECK(ended.code == 75);
  CHECK(contains(ended.words,
                 "parallel::run_threads: rank 1 of 3 has not ended 200 ms after another did; it hangs behind its last "
                 "exchange, or the "
                 "deadline is too short; the program ends with exit code 75\n"));
  CHECK(contains(ended.words, "rank 1 of 3: 1 all_reduce of 4 bytes f32 among 3 (loss), waited for\n"));
}

TEST_CASE("a rank that hangs although another failed is named") {
  const Ended ended = run(
      3,
      [](Threads& world) {
        if (world.rank() == 2) throw std::runtime_error("the reader failed");
        if (world.rank() == 1) hang();
      },
      200ms);
  CHECK(ended.code == 75);
  CHECK(contains(
      ended.words,
      "parallel::run_threads: rank 1 of 3 does not end although rank 2 failed: the reader failed; the program"));
}

TEST_CASE("ranks that still exchange may go on after another has ended") {
  const Ended ended = run(
      3,
      [](Threads& world) {
        Threads group = world.split(world.rank() / 2, world.rank());
        for (int i = 0; i < 30 && world.rank() < 2; ++i) {
          std::this_thread::sleep_for(20ms);
          group.barrier();
        }
      },
      200ms);
  CHECK(ended.words == "");
  CHECK(ended.code == 0);
}

TEST_CASE("a long phase") {
  const auto phase = [](auto rank_1, auto then) {
    return run(
        3,
        [&](Threads& world) {
          long_phase(world, "loading the corpus", 600ms, [&] {
            if (world.rank() == 1) rank_1();
            if (world.rank() == 2) sum(world);  // with rank 0, which is in the phase, too
            if (world.rank() < 2) sum(world);
          });
          if (world.rank() == 1) then();
          world.barrier();
        },
        100ms);
  };
  CHECK(phase([] { std::this_thread::sleep_for(300ms); }, [] {}).code == 0);
  const Ended within = phase(hang, [] {});
  CHECK(within.code == 75);
  CHECK(contains(
      within.words,
      "of 3 (in the phase 'loading the corpus') waited 600 ms in all_reduce of 1 f32 for rank 1 of 3 (in the phase "
      "'loading the corpus'); it hangs"));
  const Ended behind = phase([] {}, hang);
  CHECK(behind.code == 75);
  CHECK(contains(behind.words, " waited 100 ms in barrier for rank 1 of 3; it hangs"));
}

TEST_CASE("at the deadline the last 64 exchanges of all ranks are printed") {
  const Ended ended = run(
      2,
      [](Threads& world) {
        for (int i = 0; i < 100; ++i) sum(world, "a label that is longer than what a line of the history keeps");
        if (world.rank() == 1) hang();
        world.barrier();
      },
      200ms);
  CHECK(ended.code == 75);
  for (const char* who : {"rank 0 of 2: ", "rank 1 of 2: "})
    CHECK(count(ended.words, std::string("\n") + who) + (ended.words.starts_with(who) ? 1 : 0) == 64);
  CHECK(!contains(ended.words, "rank 1 of 2: 36 "));
  CHECK(contains(
      ended.words,
      "rank 1 of 2: 37 all_reduce of 4 bytes f32 among 2 (a label that...ine of the history keeps), waited for\n"));
  CHECK(contains(ended.words, "rank 1 of 2: 100 all_reduce"));
  CHECK(contains(ended.words, "rank 0 of 2: 101 barrier among 2, started\n"));
}

TEST_CASE("the deadline does not run while threads are started") {
  before_each_thread = 10ms;
  const Ended ended = run(
      40, [](Threads& world) { world.barrier(); }, 200ms);
  before_each_thread = 0ms;
  CHECK(ended.words == "");
  CHECK(ended.code == 0);
}

TEST_CASE("many ranks") {
  CHECK(run(1500, [](Threads& world) { world.barrier(); }).code == 0);
  const Ended ended = run(
      300,
      [](Threads& world) {
        if (world.rank() % 30 != 0) hang();
        world.barrier();
      },
      300ms);
  CHECK(ended.code == 75);
  CHECK(contains(
      ended.words,
      "for rank 1 of 300, rank 2 of 300, rank 3 of 300, rank 4 of 300, rank 5 of 300, rank 6 of 300, rank 7 of 300, "
      "rank 8 of 300 and 282 others; it hangs"));
}
