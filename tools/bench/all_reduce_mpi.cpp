// All-reduce between processes against plain MPI_Allreduce on the same buffers in the same job.
//
//   mpirun -n 2 all_reduce_mpi [--rounds N]
#include <cstring>

#include <parallel/communicator/mpi.hpp>

#include "all_reduce.hpp"

namespace bench {

/// A word goes to the next process and back, in nanoseconds.
double round_trip(Mpi& world) {
  int word = 0;
  const int rank = world.rank();
  return 1e9 * together(world, 2000, [&] {
           if (rank == 0)
             MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD),
                 MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
           if (rank == 1)
             MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                 MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
         });
}

void measure(Mpi& world, int rounds) {
  const std::string who = std::to_string(world.size()) + " processes";
  const auto say = [&](const std::string& what, const Spread& s, const char* unit) {
    if (world.rank() == 0) row("all_reduce_mpi", who + ": " + what, s, unit);
  };
  const auto plain = [](const Exchange& e) {
    MPI_Allreduce(e.in, e.out, static_cast<int>(e.count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };

  Arrays word(64);
  const Exchange one = word.message(4);
  std::vector<double> trips, ours, theirs;
  for (int round = -1; round < rounds; ++round) {
    const double trip = round_trip(world), own = 1e9 * together(world, 1000, [&] { exchange(world, one); });
    const double other = 1e9 * together(world, 1000, [&] { plain(one); });
    if (round >= 0) {
      trips.push_back(trip);
      ours.push_back(own);
      theirs.push_back(other);
    }
  }
  say("a word to the next process and back", spread(trips), "ns");
  say("of one float", spread(ours), "ns");
  say("of one float, MPI_Allreduce", spread(theirs), "ns");
  say("of one float, MPI_Allreduce / this", ratio(theirs, ours), "times as fast");

  for (const std::int64_t bytes : sizes) {
    Arrays buffers(bytes);
    const Exchange e = buffers.message(bytes);
    ours.clear();
    theirs.clear();
    std::vector<double> ours_in_use, theirs_in_use;
    for (int round = -1; round < rounds; ++round) {
      const int times = repeats(bytes);
      const auto own = [&] { exchange(world, e); };
      const auto other = [&] { plain(e); };
      const double here = together(world, times, own), there = together(world, times, other);
      const double here_in_use = together(world, times, [&] { in_use(buffers, bytes, own); }),
                   there_in_use = together(world, times, [&] { in_use(buffers, bytes, other); });
      if (round < 0) continue;
      ours.push_back(here);
      theirs.push_back(there);
      ours_in_use.push_back(here_in_use);
      theirs_in_use.push_back(there_in_use);
    }
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    say(size_text(bytes), per(gigabytes, ours), "GB/s");
    say(size_text(bytes) + ", MPI_Allreduce", per(gigabytes, theirs), "GB/s");
    say(size_text(bytes) + ", MPI_Allreduce / this", ratio(theirs, ours), "times as fast");
    const std::string used = size_text(bytes) + ", terms written and sums read";
    say(used, per(gigabytes, ours_in_use), "GB/s");
    say(used + ", MPI_Allreduce / this", ratio(theirs_in_use, ours_in_use), "times as fast");
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 7;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0)
    rounds = std::atoi(argv[2]);
  else if (argc != 1)
    return std::fprintf(stderr, "all_reduce_mpi: unknown argument '%s'; say all_reduce_mpi [--rounds N]\n", argv[1]), 2;
  parallel::run_mpi([&](parallel::Mpi& world) { bench::measure(world, rounds); });
}
