// Ranks under MPI: every collective against its definition, and what MPI was really called for, counted between the
// library and MPI.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

#include "message_cases.hpp"
#include "mpi_calls.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace std::chrono_literals;
using cases::index;
using namespace mpi_calls;

namespace {

std::string text(const std::vector<Called>& all) {
  std::string words;
  for (const Called& c : all) words += c.name + "(" + std::to_string(c.given) + ", " + std::to_string(c.got) + ") ";
  return words;
}

/// What f writes to the standard error stream.
template <class F>
std::string stderr_of(F f) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int before = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::string words(4096, '\0');
  std::rewind(file);
  words.resize(std::fread(words.data(), 1, words.size(), file));
  std::fclose(file);
  return words;
}
bool contains(const std::string& all, const std::string& words) { return all.find(words) != std::string::npos; }

/// The exit code with which f ends the job; 0 if it does not.
template <class F>
int abort_code(F f) {
  try {
    f();
  } catch (const Aborted& aborted) {
    return aborted.code;
  }
  return 0;
}

/// As between machines: what ranks of one machine exchange through memory that they share, MPI does not see.
constexpr MpiOptions by_calls{.shared_memory = false};

std::vector<float> floats(std::int64_t count) { return std::vector<float>(index(count), 1.0f); }

/// Messages around a ring.
void around(Mpi& c) {
  const int n = c.size(), next = (c.rank() + 1) % n, previous = (c.rank() + n - 1) % n;
  auto a = floats(40), b = floats(40);
  const Ticket first = c.start({.kind = Collective::receive, .out = b.data(), .count = 33, .peer = previous});
  exchange(c, {.kind = Collective::send, .in = a.data(), .count = 33, .peer = next});
  c.wait(first);
}

/// Of each kind of collective one or two, with counts that the ranks do not divide where that is allowed.
template <class C>
void one_of_each(C& c, int root) {
  const int n = c.size();
  auto a = floats(40 * n), b = floats(40 * n);
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 7 * n + 1});
  exchange(c, {Collective::all_reduce, a.data(), a.data(), 3, DType::f64, true});
  exchange(c, {Collective::reduce_scatter, a.data(), b.data(), 2 * n, DType::i32});
  exchange(c, {Collective::all_gather, a.data(), b.data(), 3 * n, DType::bf16});
  exchange(c, {Collective::all_to_all, a.data(), b.data(), 4 * n * n});
  exchange(c, {Collective::rotate, a.data(), b.data(), 6 * n});
  exchange(c, {Collective::broadcast, a.data(), b.data(), 9, DType::f64, false, root});
  exchange(c, {Collective::reduce, a.data(), b.data(), 11, DType::f32, false, root});
  exchange(c, {Collective::reduce, a.data(), b.data(), 5, DType::f32, true, root});
}

}  // namespace

TEST_CASE("every collective is its definition, bit for bit") {
  for (const MpiOptions& options : {MpiOptions{}, by_calls}) {
    Mpi world(options);
    CHECK(cases::every_collective(world) == "");
  }
}

TEST_CASE("pieces into the caches and past them") {
  Mpi world(MpiOptions{});
  CHECK(cases::both_ways(world, world.size()) == "");
}

TEST_CASE("exchanges overlap") {
  for (const MpiOptions& options : {MpiOptions{}, by_calls}) {
    Mpi world(options);
    CHECK(cases::overlapping(world, 2) == "");
    CHECK(cases::alternating(world) == "");
  }
}

TEST_CASE("messages") {
  Mpi calling(by_calls);
  CHECK(messages::every_case(calling, 2, 500) == "");
  Mpi world;
  CHECK(messages::every_case(world, 5, 1500) == "");
  Mpi backwards = world.split(0, -world.rank());
  CHECK(messages::every_case(backwards, 2, 300) == "");
}

TEST_CASE("a message goes on while its sender computes, if progress is called") {
  Mpi world;
  if (world.size() == 1) return;
  // The receiver says by a file that it has the message: MPI is not to be called for it.
  const std::string said =
      (std::filesystem::temp_directory_path() / ("parallel_progress_" + std::to_string(getppid()))).string();
  std::remove(said.c_str());
  world.barrier();
  auto x = floats(1 << 20);
  if (world.rank() == 0) {
    const Ticket ticket = world.start({.kind = Collective::send, .in = x.data(), .count = 1 << 20, .peer = 1});
    bool received = false;
    for (const auto until = std::chrono::steady_clock::now() + 10s;
         !received && std::chrono::steady_clock::now() < until;) {
      world.progress();
      received = access(said.c_str(), F_OK) == 0;
    }
    CHECK(received);
    world.wait(ticket);
  } else if (world.rank() == 1) {
    exchange(world, {.kind = Collective::receive, .out = x.data(), .count = 1 << 20, .peer = 0});
    if (std::FILE* file = std::fopen(said.c_str(), "w")) std::fclose(file);
  }
  world.barrier();
  std::remove(said.c_str());
}

TEST_CASE("a send and a receive that differ") {
  Mpi world;
  if (world.size() == 1 || world.rank() > 1) return;
  std::vector<double> x(100000);
  const auto what = [](Collective kind, std::int64_t count, DType dtype) {
    return Exchange{
        .kind = kind, .count = count, .dtype = dtype, .label = "activation", .peer = kind == Collective::send ? 1 : 0};
  };
  for (const auto& [sent, received] :
       {std::pair{what(Collective::send, 3, DType::f32), what(Collective::receive, 5, DType::f32)},
        std::pair{what(Collective::send, 5, DType::f32), what(Collective::receive, 5, DType::i32)},
        std::pair{what(Collective::send, 5, DType::f32), what(Collective::receive, 3, DType::f32)},
        std::pair{what(Collective::send, 100000, DType::f64), what(Collective::receive, 100000, DType::f32)}}) {
    Exchange mine = world.rank() == 0 ? sent : received;
    mine.in = mine.out = x.data();
    const Ticket ticket = world.start(mine);
    if (world.rank() == 0) {
      world.wait(ticket);
      continue;
    }
    std::string words = "nothing";
    try {
      world.wait(ticket);
    } catch (const Mismatch& error) {
      words = error.what();
    }
    const std::string n = std::to_string(world.size());
    Exchange unlabelled = sent;
    unlabelled.label = "";
    CHECK(contains(words,
                   "parallel::wait: a send and its receive differ; give both the same count and dtype: rank 1 of " + n +
                       " " + parallel::text(received) + ", rank 0 of " + n + " " + parallel::text(unlabelled)));
  }
  float y = 0;  // what comes after is not disturbed
  const Collective kind = world.rank() == 0 ? Collective::send : Collective::receive;
  exchange(world, {.kind = kind, .in = &y, .out = &y, .count = 1, .peer = 1 - world.rank()});
}

TEST_CASE("a collective that MPI cuts") {
  Mpi world(by_calls), group = world.split(0, world.rank());
  auto x = floats(6);
  std::string words;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // as Boost.MPI does where it initialises MPI, in run_mpi
  try {
    exchange(group,
             {.kind = Collective::broadcast, .in = x.data(), .out = x.data(), .count = world.rank() == 0 ? 6 : 3});
  } catch (const Mismatch& error) {
    words = error.what();
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (world.rank() == 0) CHECK(words == "");
  if (world.rank() == 1) CHECK(contains(words, "parallel: broadcast of 3 f32 from rank 0 failed: MPI_ERR_TRUNCATE"));
}

TEST_CASE("ranks of one machine that call different collectives are told of both") {
  Mpi world;
  const int n = world.size();
  if (n == 1) return;
  auto x = floats(40 * n), y = floats(40 * n);
  const Exchange all{.in = x.data(), .out = y.data(), .count = 8 * n, .label = "loss"};
  const auto with = [&](auto change) {
    Exchange e = all;
    change(e);
    return e;
  };
  for (const Exchange& other :
       {with([](Exchange& e) { e.count = 3; }), with([](Exchange& e) { e.dtype = DType::f64; }),
        with([](Exchange& e) { e.maximum = true; }), with([](Exchange& e) { e.kind = Collective::reduce_scatter; }),
        with([](Exchange& e) { e.kind = Collective::all_gather; })}) {
    Mpi group = world.split(0, world.rank());  // what comes after a mistake is undefined
    std::string words;
    try {
      exchange(group, group.rank() == 0 ? all : other);
    } catch (const Mismatch& error) {
      words = error.what();
    }
    // a rank need not wait for those that are behind: the last has seen the first
    if (group.rank() == n - 1) {
      CHECK(contains(words,
                     "parallel::wait: the ranks of a group call different collectives; let all call the same in the "
                     "same order: rank " +
                         std::to_string(n - 1) + " of " + std::to_string(n) + " " + parallel::text(other) +
                         " of communicator_mpi.cpp:"));
      CHECK(contains(words, ", rank 0 of " + std::to_string(n) + " all_reduce of " + std::to_string(8 * n) + " f32"));
    }
    world.barrier();
  }
  Mpi group = world.split(0, world.rank());
  std::string words;
  try {
    group.rank() == 0 ? group.barrier() : exchange(group, all);
  } catch (const Mismatch& error) {
    words = error.what();
  }
  if (n == 2)
    CHECK(contains(words, group.rank() == 0 ? "rank 0 of 2 barrier, rank 1 of 2 all_reduce of 16 f32"
                                            : "(loss) of communicator_mpi.cpp:"));
  world.barrier();
}

TEST_CASE("a collective that differs and that a rank needs nothing of is told by the next") {
  Mpi world;
  if (world.size() == 1) return;
  Mpi group = world.split(0, world.rank());
  float x = 1, y = 0;
  exchange(group, {Collective::broadcast, &x, &y, 1, DType::f32, false, std::min(group.rank(), 1)});
  std::string words;
  try {
    exchange(group, {.in = &x, .out = &y, .count = 1});
  } catch (const Mismatch& error) {
    words = error.what();
  }
  if (group.rank() == group.size() - 1)
    CHECK(contains(words,
                   "parallel::wait: the ranks of a group have called different collectives before this; let all "
                   "call the same in the same order: rank "));
  world.barrier();
}

TEST_CASE("a collective that differs is told by its own wait, not by one before it") {
  Mpi world;
  if (world.size() == 1) return;
  Mpi group = world.split(0, world.rank());
  float x = 1, y = 0, z = 0;
  const Ticket first = group.start({.in = &x, .out = &y, .count = 1});
  const Ticket second = group.start({.in = &x, .out = &z, .count = 1, .maximum = group.rank() == 0});
  group.wait(first);
  CHECK(y == static_cast<float>(world.size()));
  if (group.rank() == group.size() - 1) CHECK_THROWS_AS(group.wait(second), Mismatch);
  world.barrier();
}

TEST_CASE("a message goes on while its receiver is in collectives that never wait") {
  Mpi world;
  if (world.size() < 3) return;
  Mpi pair = world.split(world.rank() == 1 ? 0 : 1, world.rank());
  const std::int64_t large = 1 << 22;
  auto x = floats(world.rank() < 2 ? large : 1);
  const std::string said =
      (std::filesystem::temp_directory_path() / ("parallel_message_" + std::to_string(getppid()))).string();
  std::remove(said.c_str());
  world.barrier();
  if (world.rank() == 1) {
    std::this_thread::sleep_for(100ms);  // the receive has been started: MPI has to be called once more
    exchange(world, {.kind = Collective::send, .in = x.data(), .count = large, .peer = 0});
    if (std::FILE* file = std::fopen(said.c_str(), "w")) std::fclose(file);
  } else {
    Ticket received{};
    if (world.rank() == 0)
      received = world.start({.kind = Collective::receive, .out = x.data(), .count = large, .peer = 1});
    // rank 2 is ahead, so that rank 0 finds what it takes and does not wait
    float word = 0;
    for (const auto until = std::chrono::steady_clock::now() + 10s; word == 0;) {
      if (world.rank() == 2)
        word = access(said.c_str(), F_OK) == 0 ? 1 : std::chrono::steady_clock::now() < until ? 0 : 2;
      exchange(pair, {.kind = Collective::broadcast, .in = &word, .out = &word, .count = 1, .root = 1});
    }
    CHECK(word == 1);
    if (world.rank() == 0) world.wait(received);
  }
  world.barrier();
  std::remove(said.c_str());
}

TEST_CASE("what moves is waited for beyond the deadline") {
  processes::Place place{boost::mpi::communicator(MPI_COMM_SELF, boost::mpi::comm_attach),
                         std::make_shared<processes::Job>(MpiOptions{.deadline = 20ms})};
  int steps = 0;
  const auto moving = [&](bool& moved) {
    if (steps % 16 == 0) std::this_thread::sleep_for(4ms);
    moved = true;
    return ++steps > 16 * 20;
  };
  CHECK(abort_code([&] { place.until(moving, nullptr, "a test"); }) == 0);
  CHECK(steps > 16 * 20);
}

TEST_CASE("ranks of one machine call MPI for messages alone") {
  Mpi world;
  calls.clear();
  one_of_each(world, 0);
  world.barrier();
  if (world.size() > 1) CHECK(text(calls) == "");
}

TEST_CASE("groups on a mesh") {
  using namespace parallel::axes;
  Mpi world;
  const int n = world.size();
  CHECK(cases::groups_of(world, n == 4 ? Mesh{data = 2, tensor = 2} : Mesh{data = n, tensor = 1}) == "");
  Mpi backwards = world.split(0, -world.rank());
  CHECK(backwards.rank() == n - 1 - world.rank());
  CHECK(cases::every_collective(backwards) == "");
  CHECK_THROWS_AS(world.split(-1, 0), Failure);
}

TEST_CASE("refusals and records") {
  Mpi world;
  CHECK(cases::refusals(world) == "");
  CHECK(cases::records(world) == "");
  float x = 0;
  CHECK_THROWS_AS(world.start({Collective::broadcast, &x, &x, std::int64_t{1} << 31}), ExchangeRefused);
}

TEST_CASE("MPI is called for what was recorded, and for nothing else") {
  Mpi world(by_calls);
  const int root = world.size() - 1;
  std::vector<Record> records;
  world.record(&records);
  calls.clear();
  one_of_each(world, root);
  if (world.size() > 1) around(world);
  CHECK(records.size() == (world.size() > 1 ? 11 : 9));
  CHECK(text(calls) == text(promised(records, world.rank(), root)));
  if (world.size() == 1) CHECK(calls.empty());

  calls.clear();
  world.barrier();
  CHECK(text(calls) == (world.size() > 1 ? "Ibarrier(0, 0) " : ""));
}

TEST_CASE("the library's own reductions, on request") {
  Mpi world({.library_reduction = true});
  const int n = world.size();
  calls.clear();
  auto a = floats(6 * n), b = floats(6 * n);
  for (std::int64_t i = 0; i < 6 * n; ++i) a[index(i)] = static_cast<float>(world.rank() + i);
  exchange(world, {Collective::all_reduce, a.data(), b.data(), 5});
  CHECK(b[2] == static_cast<float>(n * (n - 1) / 2 + 2 * n));
  exchange(world, {Collective::all_reduce, a.data(), b.data(), 5, DType::f32, true});
  CHECK(b[2] == static_cast<float>(n - 1 + 2));
  exchange(world, {Collective::reduce_scatter, a.data(), b.data(), 6 * n});
  CHECK(b[1] == static_cast<float>(n * (n - 1) / 2 + (6 * world.rank() + 1) * n));
  exchange(world, {Collective::reduce, a.data(), a.data(), 4, DType::f32, false, n - 1});
  if (world.rank() == n - 1) CHECK(a[3] == static_cast<float>(n * (n - 1) / 2 + 3 * n));
  exchange(world, {Collective::all_gather, a.data(), b.data(), 2 * n});
  if (n > 1)
    CHECK(text(calls) == "Iallreduce SUM(20, 20) Iallreduce MAX(20, 20) Ireduce_scatter_block SUM(" +
                             std::to_string(24 * n) + ", 24) Ireduce SUM(16, " + (world.rank() == n - 1 ? "16" : "0") +
                             ") Iallgather(8, " + std::to_string(8 * n) + ") ");
  std::vector<float16> halves(4, float16(static_cast<float>(world.rank())));  // which no library of MPI adds
  exchange(world, {Collective::all_reduce, halves.data(), halves.data(), 4, DType::f16});
  CHECK(static_cast<float>(halves[3]) == static_cast<float>(n * (n - 1) / 2));
}

TEST_CASE("a rank that waits longer than the deadline says where and ends the job") {
  Mpi world;
  if (world.size() == 1) return;  // nobody to wait for
  Mpi group = world.split(0, world.rank());
  float x = 1, y = 0;
  const Exchange loss{Collective::all_reduce, &x, &y, 1, DType::f32, false, 0, "loss"};
  Ticket ticket;
  if (world.rank() == 0) {
    ticket = group.start(loss);
    group.deadline(100ms);
    int code = 0;
    const auto start = std::chrono::steady_clock::now();
    const auto words = stderr_of([&] { code = abort_code([&] { group.wait(ticket); }); });
    CHECK(std::chrono::steady_clock::now() - start < 600ms);
    group.deadline(default_deadline);
    CHECK(code == 75);
    CHECK(contains(
        words,
        "parallel::wait: rank 0 of " + std::to_string(world.size()) +
            " waited 100 ms in all_reduce of 1 f32 (loss); another rank hangs, has ended or calls something else"));
  }
  world.barrier();
  if (world.rank() != 0) ticket = group.start(loss);  // late, but here: rank 0 can wait again
  group.wait(ticket);
  CHECK(y == static_cast<float>(world.size()));
}

TEST_CASE("in a long phase ranks wait longer, and what is too late names it") {
  Mpi world;
  if (world.size() == 1) return;
  world.deadline(100ms);
  long_phase(world, "loading the corpus", 10s, [&] {
    if (world.rank() == 1) std::this_thread::sleep_for(300ms);
  });
  Mpi apart = world.split(0, world.rank());
  if (world.rank() == 0) {
    int code = 0;
    const auto words = stderr_of([&] { code = abort_code([&] { long_phase(apart, "writing", 200ms, [] {}); }); });
    CHECK(code == 75);
    CHECK(contains(words, "parallel::wait: rank 0 of " + std::to_string(world.size()) +
                              " waited 200 ms in barrier (in the phase 'writing'); another rank hangs"));
    CHECK(contains(words, "rank 0 of " + std::to_string(world.size()) + ": 1 barrier among " +
                              std::to_string(world.size()) + ", waited for\n"));
    CHECK(contains(words, ": 2 barrier among " + std::to_string(world.size()) + ", started\n"));
  }
  world.deadline(default_deadline);
  world.barrier();
  if (world.rank() != 0) apart.barrier();  // rank 0 has started its own, and waits for it no more
  world.barrier();
}

TEST_CASE("a message whose other end is not there, or late") {
  Mpi world;
  if (world.size() == 1 || world.rank() > 1) return;
  const int other = 1 - world.rank();
  // rank 0's end; a send so large that it waits for its receiver
  for (const Collective kind : {Collective::receive, Collective::send}) {
    std::vector<double> x(1 << 20);
    const std::int64_t count = kind == Collective::send ? 1 << 20 : 1;
    const Collective mine = (kind == Collective::send) == (world.rank() == 0) ? Collective::send : Collective::receive;
    const Exchange e{.kind = mine,
                     .in = x.data(),
                     .out = x.data(),
                     .count = count,
                     .dtype = DType::f64,
                     .label = "late",
                     .peer = other};
    if (world.rank() == 0) {
      const Ticket ticket = world.start(e);
      world.deadline(100ms);
      int code = 0;
      const auto words = stderr_of([&] { code = abort_code([&] { world.wait(ticket); }); });
      world.deadline(default_deadline);
      CHECK(code == 75);
      CHECK(contains(words, "parallel::wait: rank 0 of " + std::to_string(world.size()) + " waited 100 ms in " +
                                parallel::text(e) + "; another rank hangs, has ended or calls something else"));
      world.wait(ticket);  // late, but here
    } else {
      std::this_thread::sleep_for(300ms);
      exchange(world, e);
    }
  }
}

TEST_CASE("run_mpi ends well, or with the exit code of what was thrown") {
  int seen = 0;
  CHECK(abort_code([&] { run_mpi([&](Mpi& world) { seen = world.size(); }); }) == 0);
  CHECK(seen == Mpi().size());

  int code = 0;
  const auto words_of = [&](auto f, MpiOptions options = {}) {
    return stderr_of([&] { code = abort_code([&] { run_mpi(f, options); }); });
  };
  CHECK(contains(words_of([](Mpi&) { throw std::runtime_error("the disk is full"); }), "the disk is full (rank "));
  CHECK(code == 70);
  words_of([](Mpi&) { throw Mismatch("plans differ"); });
  CHECK(code == 76);
  words_of([](Mpi&) { throw Failure("no", 0); });
  CHECK(code == 1);
  CHECK(contains(words_of([](Mpi&) { throw 42; }),
                 "an exception that is no std::exception; throw one whose what() says what failed (rank "));
  CHECK(code == 70);
  CHECK(contains(words_of([](Mpi&) { throw std::bad_alloc(); }),
                 "out of memory; use a smaller model, a smaller batch or more ranks (rank "));
  CHECK(code == 1);

  const auto words = words_of([](Mpi&) { FAIL("must not be called"); }, {.ranks = 64});
  CHECK(code == 78);
  CHECK(contains(words, "parallel::run_mpi: 64 ranks are expected, but "));
  CHECK(contains(
      words, seen == 1
                 ? "this one runs alone, as a program does that was started without mpirun; start it with mpirun -n 64"
                 : std::to_string(seen) + " are running; start the program with mpirun -n 64"));
  CHECK(abort_code([&] { run_mpi([](Mpi&) {}, {.ranks = seen}); }) == 0);
}
