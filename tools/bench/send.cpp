// Messages from rank to rank, against a plain copy (threads) or MPI_Send and MPI_Recv (processes) of the same buffers.
//
//   send [--rounds N]
//   mpirun -n 2 send --mpi [--rounds N]
#include <parallel/communicator/threads.hpp>
#ifdef WITH_MPI
#include <parallel/communicator/mpi.hpp>
#endif

#include <cstring>

#include "all_reduce.hpp"

namespace bench {

/// This rank's end of a message from rank `from` of two to the other.
template <Communicator World>
void message(World& world, const Arrays& buffers, std::int64_t bytes, int from) {
  Exchange e = buffers.message(bytes);
  e.kind = world.rank() == from ? Collective::send : Collective::receive;
  e.peer = 1 - world.rank();
  exchange(world, e);
}

/// `plain(buffers, bytes, from)` is what a message is measured against.
template <Communicator World, class Plain>
void measure(World& world, int rounds, const std::string& who, const std::string& name, Plain plain) {
  const auto say = [&](const std::string& what, const Spread& s, const char* unit) {
    if (world.rank() == 0) row("send", who + ": " + what, s, unit);
  };
  const auto both = [&](std::int64_t bytes, int times, auto f) {
    std::vector<double> ours, theirs;
    Arrays buffers(bytes);
    for (int round = -1; round < rounds; ++round) {
      const double own = together(world, times, [&] { f([&](int from) { message(world, buffers, bytes, from); }); });
      const double other = together(world, times, [&] { f([&](int from) { plain(buffers, bytes, from); }); });
      if (round >= 0) {
        ours.push_back(own);
        theirs.push_back(other);
      }
    }
    return std::pair(ours, theirs);
  };
  const auto there_and_back = [](auto one_way) {
    one_way(0);
    one_way(1);
  };
  const auto there = [](auto one_way) { one_way(0); };

  const auto [ours, theirs] = both(64, 2000, there_and_back);
  say("64 B there and back", scaled(1e9, ours), "ns");
  if (name != "memcpy") {  // which goes to nobody
    say("64 B there and back, " + name, scaled(1e9, theirs), "ns");
    say("64 B there and back, " + name + " / this", ratio(theirs, ours), "times as fast");
  }
  for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{1} << 20, std::int64_t{16} << 20}) {
    const auto [own, other] = both(bytes, 4 * repeats(bytes), there);
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    say(size_text(bytes), per(gigabytes, own), "GB/s");
    say(size_text(bytes) + ", " + name, per(gigabytes, other), "GB/s");
    say(size_text(bytes) + ", " + name + " / this", ratio(other, own), "times as fast");
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  int rounds = 7;
  bool mpi = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--mpi") == 0)
      mpi = true;
    else
      return std::fprintf(stderr, "send: unknown argument '%s'; say send [--mpi] [--rounds N]\n", argv[i]), 2;
  }
  if (!mpi) {
    run_threads(2, [&](Threads& world) {
      measure(world, rounds, "2 threads", "memcpy", [&](const Arrays& b, std::int64_t bytes, int from) {
        if (world.rank() != from) std::memcpy(b.out.data(), b.in.data(), static_cast<std::size_t>(bytes));
      });
    });
    return 0;
  }
#ifdef WITH_MPI
  run_mpi(
      [&](Mpi& world) {
        measure(world, rounds, "2 processes", "MPI_Send and MPI_Recv",
                [&](const Arrays& b, std::int64_t bytes, int from) {
                  const auto count = static_cast<int>(bytes / 4);
                  if (world.rank() == from)
                    MPI_Send(b.in.data(), count, MPI_FLOAT, 1 - from, 0, MPI_COMM_WORLD);
                  else
                    MPI_Recv(b.out.data(), count, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                });
      },
      {.ranks = 2});
  return 0;
#else
  return std::fprintf(stderr, "send: this build has no MPI\n"), 69;
#endif
}
