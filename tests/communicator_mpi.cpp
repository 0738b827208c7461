// Ranks under MPI: every collective against its definition, and what MPI was really called for, counted between the library and MPI.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <parallel/communicator/mpi.hpp>

#include "communicator_cases.hpp"

using namespace parallel;
using namespace std::chrono_literals;
using cases::index;

namespace {

/// A call of MPI, with the bytes that this rank gives to all and gets from all, itself included where the call says so.
struct Called {
  std::string name;
  std::int64_t given = 0, got = 0;
  bool operator==(const Called&) const = default;
};
std::vector<Called> calls;

std::int64_t bytes(std::int64_t count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return count * size;
}
int ranks_of(MPI_Comm communicator) {
  int n = 0;
  PMPI_Comm_size(communicator, &n);
  return n;
}
std::int64_t sum(const int* counts, MPI_Comm communicator) {
  std::int64_t total = 0;
  for (int r = 0; r < ranks_of(communicator); ++r) total += counts[r];
  return total;
}
void note(const char* name, std::int64_t given, std::int64_t got) { calls.push_back({name, given, got}); }

/// What MPI_Abort does in these tests.
struct Aborted {
  int code;
};

}  // namespace

// MPI's profiling interface: the library calls these, and these call MPI.
extern "C" {
int MPI_Ialltoallv(const void* in, const int given[], const int in_offsets[], MPI_Datatype in_type, void* out, const int got[],
                   const int out_offsets[], MPI_Datatype out_type, MPI_Comm c, MPI_Request* request) {
  note("Ialltoallv", bytes(sum(given, c), in_type), bytes(sum(got, c), out_type));
  return PMPI_Ialltoallv(in, given, in_offsets, in_type, out, got, out_offsets, out_type, c, request);
}
int MPI_Iallgatherv(const void* in, int given, MPI_Datatype in_type, void* out, const int got[], const int offsets[], MPI_Datatype type,
                    MPI_Comm c, MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note("Iallgatherv", bytes(in == MPI_IN_PLACE ? got[rank] : given, type), bytes(sum(got, c), type));
  return PMPI_Iallgatherv(in, given, in_type, out, got, offsets, type, c, request);
}
int MPI_Ialltoall(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, MPI_Comm c,
                  MPI_Request* request) {
  note("Ialltoall", bytes(given, in_type) * ranks_of(c), bytes(got, type) * ranks_of(c));
  return PMPI_Ialltoall(in, given, in_type, out, got, type, c, request);
}
int MPI_Iallgather(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, MPI_Comm c,
                   MPI_Request* request) {
  note("Iallgather", bytes(given, in_type), bytes(got, type) * ranks_of(c));
  return PMPI_Iallgather(in, given, in_type, out, got, type, c, request);
}
int MPI_Igather(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, int root, MPI_Comm c,
                MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note("Igather", bytes(in == MPI_IN_PLACE ? got : given, in_type), rank == root ? bytes(got, type) * ranks_of(c) : 0);
  return PMPI_Igather(in, given, in_type, out, got, type, root, c, request);
}
int MPI_Ibcast(void* out, int count, MPI_Datatype type, int root, MPI_Comm c, MPI_Request* request) {
  note("Ibcast", bytes(count, type), bytes(count, type));
  return PMPI_Ibcast(out, count, type, root, c, request);
}
int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c, MPI_Request* request) {
  note(op == MPI_MAX ? "Iallreduce MAX" : "Iallreduce SUM", bytes(count, type), bytes(count, type));
  return PMPI_Iallreduce(in, out, count, type, op, c, request);
}
int MPI_Ireduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c, MPI_Request* request) {
  note(op == MPI_MAX ? "Ireduce_scatter_block MAX" : "Ireduce_scatter_block SUM", bytes(count, type) * ranks_of(c), bytes(count, type));
  return PMPI_Ireduce_scatter_block(in, out, count, type, op, c, request);
}
int MPI_Ireduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm c, MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note(op == MPI_MAX ? "Ireduce MAX" : "Ireduce SUM", bytes(count, type), rank == root ? bytes(count, type) : 0);
  return PMPI_Ireduce(in, out, count, type, op, root, c, request);
}
int MPI_Ibarrier(MPI_Comm c, MPI_Request* request) {
  note("Ibarrier", 0, 0);
  return PMPI_Ibarrier(c, request);
}
// What the library has no business calling for an exchange.
int MPI_Barrier(MPI_Comm c) {
  note("Barrier", 0, 0);
  return PMPI_Barrier(c);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c) {
  note("Allreduce", bytes(count, type), bytes(count, type));
  return PMPI_Allreduce(in, out, count, type, op, c);
}
int MPI_Bcast(void* out, int count, MPI_Datatype type, int root, MPI_Comm c) {
  note("Bcast", bytes(count, type), bytes(count, type));
  return PMPI_Bcast(out, count, type, root, c);
}
int MPI_Isend(const void* in, int count, MPI_Datatype type, int to, int tag, MPI_Comm c, MPI_Request* request) {
  note("Isend", bytes(count, type), 0);
  return PMPI_Isend(in, count, type, to, tag, c, request);
}
int MPI_Send(const void* in, int count, MPI_Datatype type, int to, int tag, MPI_Comm c) {
  note("Send", bytes(count, type), 0);
  return PMPI_Send(in, count, type, to, tag, c);
}
int MPI_Abort(MPI_Comm, int code) { throw Aborted{code}; }
}

namespace {

/// The calls that DESIGN.md promises for what was recorded, each exchange waited for before the next is started.
std::vector<Called> promised(const std::vector<Record>& records, int rank, int root) {
  std::vector<Called> all;
  for (const Record& r : records) {
    if (r.ranks == 1) continue;
    const std::int64_t n = r.ranks, width = bytes_of(r.dtype), elements = r.bytes / width;
    const std::int64_t part = (elements / n + (rank < elements % n ? 1 : 0)) * width;  // of an all-reduce, which this rank sums
    switch (r.kind) {
      case Collective::all_reduce:
        all.push_back({"Ialltoallv", r.bytes - part, part * (n - 1)});
        all.push_back({"Iallgatherv", part, r.bytes});
        break;
      case Collective::reduce_scatter:
      case Collective::all_to_all: all.push_back({"Ialltoall", r.bytes, r.bytes}); break;
      case Collective::all_gather: all.push_back({"Iallgather", r.bytes / n, r.bytes}); break;
      case Collective::reduce: all.push_back({"Igather", r.bytes, rank == root ? n * r.bytes : 0}); break;
      default: all.push_back({"Ibcast", r.bytes, r.bytes});
    }
  }
  return all;
}

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

std::vector<float> floats(std::int64_t count) { return std::vector<float>(index(count), 1.0f); }

/// Of each kind one or two, with counts that the ranks do not divide where that is allowed.
template <class C>
void one_of_each(C& c, int root) {
  const int n = c.size();
  auto a = floats(40 * n), b = floats(40 * n);
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 7 * n + 1});
  exchange(c, {Collective::all_reduce, a.data(), a.data(), 3, DType::f64, true});
  exchange(c, {Collective::reduce_scatter, a.data(), b.data(), 2 * n, DType::i32});
  exchange(c, {Collective::all_gather, a.data(), b.data(), 3 * n, DType::bf16});
  exchange(c, {Collective::all_to_all, a.data(), b.data(), 4 * n});
  exchange(c, {Collective::broadcast, a.data(), b.data(), 9, DType::f64, false, root});
  exchange(c, {Collective::reduce, a.data(), b.data(), 11, DType::f32, false, root});
  exchange(c, {Collective::reduce, a.data(), b.data(), 5, DType::f32, true, root});
}

}  // namespace

TEST_CASE("every collective is its definition, bit for bit") {
  Mpi world;
  CHECK(cases::every_collective(world) == "");
}

TEST_CASE("exchanges overlap") {
  Mpi world;
  CHECK(cases::overlapping(world, 12) == "");
  CHECK(cases::alternating(world) == "");
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
  Mpi world;
  const int root = world.size() - 1;
  std::vector<Record> records;
  world.record(&records);
  calls.clear();
  one_of_each(world, root);
  CHECK(records.size() == 8);
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
    CHECK(text(calls) == "Iallreduce SUM(20, 20) Iallreduce MAX(20, 20) Ireduce_scatter_block SUM(" + std::to_string(24 * n) +
                             ", 24) Ireduce SUM(16, " + (world.rank() == n - 1 ? "16" : "0") + ") Iallgather(8, " + std::to_string(8 * n) +
                             ") ");
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
    CHECK(contains(words, "parallel::wait: rank 0 of " + std::to_string(world.size()) +
                              " waited 100 ms in all_reduce of 1 f32 (loss); another rank hangs, has ended or calls something else"));
  }
  world.barrier();
  if (world.rank() != 0) ticket = group.start(loss);  // late, but here: rank 0 can wait again
  group.wait(ticket);
  CHECK(y == static_cast<float>(world.size()));
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
  CHECK(code == 1);
  words_of([](Mpi&) { throw Mismatch("plans differ"); });
  CHECK(code == 76);
  words_of([](Mpi&) { throw Failure("no", 0); });
  CHECK(code == 1);
  words_of([](Mpi&) { throw 42; });
  CHECK(code == 1);

  const auto words = words_of([](Mpi&) { FAIL("must not be called"); }, {.ranks = 64});
  CHECK(code == 78);
  CHECK(contains(words, "parallel::run_mpi: 64 ranks are expected, but "));
  CHECK(contains(words, seen == 1 ? "this one runs alone, as a program does that was started without mpirun; start it with mpirun -n 64"
                                  : std::to_string(seen) + " are running; start the program with mpirun -n 64"));
  CHECK(abort_code([&] { run_mpi([](Mpi&) {}, {.ranks = seen}); }) == 0);
}
