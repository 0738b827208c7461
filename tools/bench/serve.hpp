// Takes a peer's steps on request: a script asks several jobs by turns.
//
// A peer prints what is to be compared before anything is timed, a line "NAME NUMBER" each, and "ready". For every line
// N of the standard input it then takes one step, N more, and prints the milliseconds of the fastest of these. Nothing
// spins while it waits for a line, as the others run then.
#pragma once
#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif

#include <iostream>
#include <thread>

#include "measure.hpp"
#include "numbers.hpp"

namespace bench {

using parallel::Threads;

/// How many steps are asked for; 0 behind the last request.
inline int request() {
  int steps = 0;
  return std::cin >> steps ? steps : 0;
}
/// The same on every rank, which sleep until then.
class ThreadRequests {
 public:
  ThreadRequests(Threads& world, std::atomic<int>& steps) : world_(world), steps_(steps) {
    world.deadline(std::chrono::hours(1));
  }
  int next() {
    if (world_.rank() == 0) steps_ = request();
    world_.barrier();
    return steps_;
  }
  void together() { world_.barrier(); }

 private:
  Threads& world_;
  std::atomic<int>& steps_;
};

#if defined(WITH_MPI)
class MpiRequests {
 public:
  int next() {
    int rank = 0, ranks = 1, steps = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
      steps = request();
      for (int r = 1; r < ranks; ++r) MPI_Send(&steps, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
      return steps;
    }
    for (int there = 0; there == 0; std::this_thread::sleep_for(std::chrono::microseconds(200)))
      MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    MPI_Recv(&steps, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return steps;
  }
  void together() { MPI_Barrier(MPI_COMM_WORLD); }
};
#endif

/// One rank, which has nobody to tell.
struct OwnRequests {
  int next() { return request(); }
  void together() {}
};

/// `speaks`: on one of the ranks. A peer of whose step a part counts says itself how many seconds that took.
template <class Peer, class Requests>
void serve(Peer& peer, Requests requests, bool speaks) {
  const auto result = peer.step();
  const std::vector<Checked> all = peer.checked(result);
  if (speaks) {
    for (const Checked& c : all) std::printf("%s %.9g\n", c.name.c_str(), c.value);
    std::printf("ready\n");
    std::fflush(stdout);
  }
  while (const int steps = requests.next()) {
    double fastest = 1e9;
    for (int i = -1; i < steps; ++i) {
      requests.together();
      double time = seconds([&] {
        peer.step();
        requests.together();
      });
      if constexpr (requires { peer.took(); }) time = peer.took();
      if (i >= 0) fastest = std::min(fastest, time);
    }
    if (speaks) std::printf("%.4f\n", fastest * 1e3), std::fflush(stdout);
  }
}

}  // namespace bench
