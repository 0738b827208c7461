// What MPI returns is looked at: each of its calls fails once, and the rank ends with a sentence and a code, never with
// old numbers.
#include <cstdio>
#include <string>
#include <unistd.h>

#include <doctest/doctest.h>

#include <parallel/communicator/mpi.hpp>

using namespace parallel;
using namespace parallel::internals;

namespace {

std::string failing;  // the name of the call that is to fail
int failed = 0;
bool fails(const char* name) {
  if (failing != name) return false;
  ++failed;
  return true;
}

/// What MPI_Abort does here.
struct Aborted {
  int code;
};

}  // namespace

// MPI's profiling interface: the library calls these, and these call MPI, or do not.
#define CALL(name, parameters, arguments) \
  extern "C" int MPI_##name parameters { return fails("MPI_" #name) ? MPI_ERR_OTHER : PMPI_##name arguments; }
CALL(Ialltoallv,
     (const void* in, const int n[], const int i[], MPI_Datatype t, void* out, const int m[], const int o[],
      MPI_Datatype u, MPI_Comm c, MPI_Request* r),
     (in, n, i, t, out, m, o, u, c, r))
CALL(Iallgatherv,
     (const void* in, int n, MPI_Datatype t, void* out, const int m[], const int o[], MPI_Datatype u, MPI_Comm c,
      MPI_Request* r),
     (in, n, t, out, m, o, u, c, r))
CALL(Ialltoall, (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm c, MPI_Request* r),
     (in, n, t, out, m, u, c, r))
CALL(Iallgather, (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm c, MPI_Request* r),
     (in, n, t, out, m, u, c, r))
CALL(Igather,
     (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, int root, MPI_Comm c, MPI_Request* r),
     (in, n, t, out, m, u, root, c, r))
CALL(Ibcast, (void* out, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* r), (out, n, t, root, c, r))
CALL(Iallreduce, (const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* r),
     (in, out, n, t, op, c, r))
CALL(Ireduce_scatter_block, (const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* r),
     (in, out, n, t, op, c, r))
CALL(Ireduce, (const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Request* r),
     (in, out, n, t, op, root, c, r))
CALL(Ibarrier, (MPI_Comm c, MPI_Request* r), (c, r))
CALL(Isend, (const void* in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
     (in, n, t, to, tag, c, r))
CALL(Irecv, (void* out, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),
     (out, n, t, from, tag, c, r))
extern "C" int MPI_Test(MPI_Request* r, int* done, MPI_Status* status) {
  if (!fails("MPI_Test")) return PMPI_Test(r, done, status);
  PMPI_Wait(r, status);  // so that the test can go on, where a job would end
  return MPI_ERR_OTHER;
}
CALL(Iprobe, (int from, int tag, MPI_Comm c, int* there, MPI_Status* status), (from, tag, c, there, status))
CALL(Comm_dup, (MPI_Comm c, MPI_Comm* made), (c, made))
CALL(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm* made), (c, color, key, made))
CALL(Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info info, MPI_Comm* made), (c, type, key, info, made))
CALL(Comm_set_errhandler, (MPI_Comm c, MPI_Errhandler handler), (c, handler))
CALL(Comm_rank, (MPI_Comm c, int* rank), (c, rank))
CALL(Comm_size, (MPI_Comm c, int* size), (c, size))
CALL(Get_elements_x, (const MPI_Status* status, MPI_Datatype t, MPI_Count* count), (status, t, count))
extern "C" int MPI_Abort(MPI_Comm, int code) {
  failing = "";
  throw Aborted{code};
}

namespace {

/// What the rank says when the call fails in f(world), and the exit code of the job; "" and 0 where it ends well.
template <class F>
std::string said(const std::string& call, F f, int& code, const MpiOptions& options) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int before = dup(2);
  dup2(fileno(file), 2);
  code = 0;
  failed = 0;
  try {
    run_mpi(
        [&](Mpi& world) {
          failing = call;
          f(world);
          failing = "";
        },
        options);
  } catch (const Aborted& aborted) {
    code = aborted.code;
  }
  failing = "";
  dup2(before, 2);
  close(before);
  std::string words;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) words += static_cast<char>(c);
  std::fclose(file);
  return words;
}

/// All ranks call it together, and on all of them it fails.
constexpr MpiOptions by_calls{.shared_memory = false};
template <class F>
void check(const std::string& call, F f, const MpiOptions& options = by_calls) {
  CAPTURE(call);
  int code = 0;
  const std::string words = said(call, f, code, options);
  CHECK(failed > 0);
  CHECK(code == 75);
  CHECK(words.find("parallel: ") == 0);
  CHECK(words.find(" failed: MPI_ERR_OTHER") != std::string::npos);
  CHECK(words.find(" (rank ") != std::string::npos);
  CHECK(words.find("; the job ends with exit code 75)\n") != std::string::npos);
}

auto exchange_of(Collective kind) {
  return [kind](Mpi& world) {
    const int n = world.size(), other = kind == Collective::send ? (world.rank() + 1) % n : (world.rank() + n - 1) % n;
    static float in[18], out[18];  // static, since nobody waits for what was started where a test fails
    const std::int64_t count = kind == Collective::all_to_all ? 36 : 6;  // ranks divide it, or their square
    exchange(world, {.kind = kind, .in = in, .out = out, .count = count, .label = "activation", .peer = other});
  };
}

/// A message from each rank to the next.
void around(Mpi& world) {
  static float x = 1, y = 0;
  const int n = world.size();
  const Ticket sent = world.start({.kind = Collective::send, .in = &x, .count = 1, .peer = (world.rank() + 1) % n});
  exchange(world, {.kind = Collective::receive, .out = &y, .count = 1, .peer = (world.rank() + n - 1) % n});
  world.wait(sent);
}

}  // namespace

TEST_CASE("a start of a collective that fails") {
  check("MPI_Ialltoallv", exchange_of(Collective::all_reduce));
  check("MPI_Iallgatherv", exchange_of(Collective::all_reduce));
  check("MPI_Ialltoall", exchange_of(Collective::reduce_scatter));
  check("MPI_Ialltoall", exchange_of(Collective::all_to_all));
  check("MPI_Ialltoallv", exchange_of(Collective::rotate));
  check("MPI_Iallgather", exchange_of(Collective::all_gather));
  check("MPI_Igather", exchange_of(Collective::reduce));
  check("MPI_Ibcast", exchange_of(Collective::broadcast));
  check("MPI_Iallreduce", exchange_of(Collective::all_reduce), {.library_reduction = true});
  check("MPI_Ireduce_scatter_block", exchange_of(Collective::reduce_scatter), {.library_reduction = true});
  check("MPI_Ireduce", exchange_of(Collective::reduce), {.library_reduction = true});
  check("MPI_Ibarrier", [](Mpi& world) { world.barrier(); });
}

TEST_CASE("a start of a message that fails") {
  check("MPI_Isend", exchange_of(Collective::send));
  check("MPI_Irecv", exchange_of(Collective::receive));
}

TEST_CASE("a wait, or a look, that fails") {
  check("MPI_Test", exchange_of(Collective::broadcast));
  check("MPI_Test", around);
  check("MPI_Test", [](Mpi& world) { world.barrier(); });
  check("MPI_Iprobe", [](Mpi& world) { world.progress(); });
  check("MPI_Get_elements_x", around);
}

TEST_CASE("the making of a group that fails") {
  for (const char* call :
       {"MPI_Comm_split", "MPI_Comm_dup", "MPI_Comm_set_errhandler", "MPI_Comm_rank", "MPI_Comm_size"})
    check(call, [](Mpi& world) { world.split(0, world.rank()); });
  check("MPI_Comm_split_type", [](Mpi& world) { world.machine(); });
  for (const char* call : {"MPI_Ibcast", "MPI_Iallreduce", "MPI_Test"})
    check(call, [](Mpi& world) { world.split(0, world.rank()); }, {.shared_memory = true});
}

TEST_CASE("without a failure all of this ends well") {
  int code = 0;
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_to_all,
                                Collective::all_gather, Collective::rotate, Collective::reduce, Collective::broadcast})
    for (const MpiOptions& options : {MpiOptions{}, by_calls})
      CHECK(said("nothing", exchange_of(kind), code, options) == "");
  CHECK(said("nothing", around, code, {}) == "");
  CHECK(said("nothing", [](Mpi& world) { CHECK(world.machine().size() == world.size()); }, code, {}) == "");
}
