// MPI's profiling interface: what MPI was really called for, counted between the library and MPI. Included by one
// source file of a program.
#pragma once
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <mpi.h>

#include <parallel/communicator/exchange.hpp>

namespace mpi_calls {
using namespace parallel;
using namespace parallel::internals;

/// A call of MPI, with the bytes that this rank gives to all and gets from all, itself included where the call says so.
struct Called {
  std::string name;
  std::int64_t given = 0, got = 0;
  std::vector<int> ranks{};  ///< of the communicator, as the world counts them
  bool operator==(const Called& other) const { return name == other.name && given == other.given && got == other.got; }
  bool operator<(const Called& other) const {
    return std::tie(name, given, got) < std::tie(other.name, other.given, other.got);
  }
};
inline std::vector<Called> calls;

inline std::int64_t bytes(std::int64_t count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return count * size;
}
inline int ranks_of(MPI_Comm communicator) {
  int n = 0;
  PMPI_Comm_size(communicator, &n);
  return n;
}
inline std::int64_t sum(const int* counts, MPI_Comm communicator) {
  std::int64_t total = 0;
  for (int r = 0; r < ranks_of(communicator); ++r) total += counts[r];
  return total;
}
inline std::vector<int> world_ranks(MPI_Comm communicator) {
  std::vector<int> own(static_cast<std::size_t>(ranks_of(communicator))), all(own.size());
  for (std::size_t r = 0; r < own.size(); ++r) own[r] = static_cast<int>(r);
  MPI_Group group{}, world{};
  PMPI_Comm_group(communicator, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, ranks_of(communicator), own.data(), world, all.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return all;
}
inline void note(MPI_Comm communicator, const char* name, std::int64_t given, std::int64_t got) {
  calls.push_back({name, given, got, world_ranks(communicator)});
}

/// What MPI_Abort does in these tests. At a deadline under Open MPI's mpirun the library would not call it.
struct Aborted {
  int code;
};
inline const int no_launcher = unsetenv("OMPI_COMM_WORLD_RANK");

// MPI's profiling interface: the library calls these, and these call MPI.
extern "C" {
int MPI_Ialltoallv(const void* in, const int given[], const int in_offsets[], MPI_Datatype in_type, void* out,
                   const int got[], const int out_offsets[], MPI_Datatype out_type, MPI_Comm c, MPI_Request* request) {
  note(c, "Ialltoallv", bytes(sum(given, c), in_type), bytes(sum(got, c), out_type));
  return PMPI_Ialltoallv(in, given, in_offsets, in_type, out, got, out_offsets, out_type, c, request);
}
int MPI_Iallgatherv(const void* in, int given, MPI_Datatype in_type, void* out, const int got[], const int offsets[],
                    MPI_Datatype type, MPI_Comm c, MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note(c, "Iallgatherv", bytes(in == MPI_IN_PLACE ? got[rank] : given, type), bytes(sum(got, c), type));
  return PMPI_Iallgatherv(in, given, in_type, out, got, offsets, type, c, request);
}
int MPI_Ialltoall(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, MPI_Comm c,
                  MPI_Request* request) {
  note(c, "Ialltoall", bytes(given, in_type) * ranks_of(c), bytes(got, type) * ranks_of(c));
  return PMPI_Ialltoall(in, given, in_type, out, got, type, c, request);
}
int MPI_Iallgather(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, MPI_Comm c,
                   MPI_Request* request) {
  note(c, "Iallgather", bytes(given, in_type), bytes(got, type) * ranks_of(c));
  return PMPI_Iallgather(in, given, in_type, out, got, type, c, request);
}
int MPI_Igather(const void* in, int given, MPI_Datatype in_type, void* out, int got, MPI_Datatype type, int root,
                MPI_Comm c, MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note(c, "Igather", bytes(in == MPI_IN_PLACE ? got : given, in_type),
       rank == root ? bytes(got, type) * ranks_of(c) : 0);
  return PMPI_Igather(in, given, in_type, out, got, type, root, c, request);
}
int MPI_Ibcast(void* out, int count, MPI_Datatype type, int root, MPI_Comm c, MPI_Request* request) {
  note(c, "Ibcast", bytes(count, type), bytes(count, type));
  return PMPI_Ibcast(out, count, type, root, c, request);
}
int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c,
                   MPI_Request* request) {
  note(c, op == MPI_MAX ? "Iallreduce MAX" : "Iallreduce SUM", bytes(count, type), bytes(count, type));
  return PMPI_Iallreduce(in, out, count, type, op, c, request);
}
int MPI_Ireduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c,
                              MPI_Request* request) {
  note(c, op == MPI_MAX ? "Ireduce_scatter_block MAX" : "Ireduce_scatter_block SUM", bytes(count, type) * ranks_of(c),
       bytes(count, type));
  return PMPI_Ireduce_scatter_block(in, out, count, type, op, c, request);
}
int MPI_Ireduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm c,
                MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(c, &rank);
  note(c, op == MPI_MAX ? "Ireduce MAX" : "Ireduce SUM", bytes(count, type), rank == root ? bytes(count, type) : 0);
  return PMPI_Ireduce(in, out, count, type, op, root, c, request);
}
int MPI_Ibarrier(MPI_Comm c, MPI_Request* request) {
  note(c, "Ibarrier", 0, 0);
  return PMPI_Ibarrier(c, request);
}
int MPI_Isend(const void* in, int count, MPI_Datatype type, int to, int tag, MPI_Comm c, MPI_Request* request) {
  note(c, "Isend", bytes(count, type), 0);
  return PMPI_Isend(in, count, type, to, tag, c, request);
}
int MPI_Irecv(void* out, int count, MPI_Datatype type, int from, int tag, MPI_Comm c, MPI_Request* request) {
  note(c, "Irecv", 0, bytes(count, type));
  return PMPI_Irecv(out, count, type, from, tag, c, request);
}
// What the library has no business calling for an exchange.
int MPI_Barrier(MPI_Comm c) {
  note(c, "Barrier", 0, 0);
  return PMPI_Barrier(c);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c) {
  note(c, "Allreduce", bytes(count, type), bytes(count, type));
  return PMPI_Allreduce(in, out, count, type, op, c);
}
int MPI_Bcast(void* out, int count, MPI_Datatype type, int root, MPI_Comm c) {
  note(c, "Bcast", bytes(count, type), bytes(count, type));
  return PMPI_Bcast(out, count, type, root, c);
}
int MPI_Send(const void* in, int count, MPI_Datatype type, int to, int tag, MPI_Comm c) {
  note(c, "Send", bytes(count, type), 0);
  return PMPI_Send(in, count, type, to, tag, c);
}
int MPI_Abort(MPI_Comm, int code) { throw Aborted{code}; }
}

/// The calls that communicator/mpi.hpp promises for what was recorded, each exchange waited for before the next is
/// started.
inline std::vector<Called> promised(const std::vector<Record>& records, int rank, int root) {
  std::vector<Called> all;
  for (const Record& r : records) {
    if (r.ranks == 1) continue;
    const std::int64_t n = r.ranks, width = bytes_of(r.dtype), elements = r.bytes / width;
    // of an all-reduce, which this rank sums
    const std::int64_t part = (elements / n + (rank < elements % n ? 1 : 0)) * width;
    switch (r.kind) {
      case Collective::all_reduce:
        all.push_back({"Ialltoallv", r.bytes - part, part * (n - 1)});
        all.push_back({"Iallgatherv", part, r.bytes});
        break;
      case Collective::reduce_scatter: all.push_back({"Ialltoall", r.bytes, r.bytes}); break;
      case Collective::all_to_all: all.push_back({"Ialltoall", r.bytes / n, r.bytes / n}); break;
      case Collective::rotate: all.push_back({"Ialltoallv", r.bytes / n, r.bytes / n}); break;
      case Collective::all_gather: all.push_back({"Iallgather", r.bytes / n, r.bytes}); break;
      case Collective::reduce: all.push_back({"Igather", r.bytes, rank == root ? n * r.bytes : 0}); break;
      case Collective::send: all.push_back({"Isend", r.bytes, 0}); break;
      case Collective::receive: all.push_back({"Irecv", 0, r.bytes}); break;
      default: all.push_back({"Ibcast", r.bytes, r.bytes});
    }
  }
  return all;
}

}  // namespace mpi_calls
