// All-reduce between threads against what the memory can do: the same bytes added, and copied past the caches, by as
// many threads.
//
//   all_reduce [--rounds N]
//
// n ranks that each read a message of b bytes and write its sum move at least 2 n b bytes, as a copy of b bytes on each
// does; a += b moves 3 / 2 of that. The limit is therefore what the copy takes, or 2 / 3 of what a += b takes. Smaller
// messages stay in caches and have no such limit.
#include "all_reduce.hpp"

#include <cstring>

#include <parallel/communicator/threads.hpp>
#include <parallel/meta/meeting.hpp>

#include "limits.hpp"

namespace bench {

/// A word goes from one thread to another and back, in nanoseconds.
double round_trip() {
  alignas(64) std::atomic<int> there{0};
  alignas(64) std::atomic<int> back{0};
  constexpr int times = 100000;
  return on_threads(2,
                    [&](int t) {
                      for (int i = 1; i <= times; ++i) {
                        if (t == 0) there.store(i, std::memory_order_release);
                        while ((t == 0 ? back : there).load(std::memory_order_acquire) < i) threading::pause();
                        if (t == 1) back.store(i, std::memory_order_release);
                      }
                    }) /
         times * 1e9;
}

void measure(int ranks, int rounds) {
  std::vector<double> trips, small, barrier;
  for (int round = 0; round < rounds; ++round) trips.push_back(round_trip());
  const std::string who = std::to_string(ranks) + " threads";
  run_threads(ranks, [&](Threads& world) {
    Arrays word(64);
    Exchange e = word.message(4);
    for (int round = 0; round < rounds; ++round) {
      const double gate = together(world, 10000, [&] { world.barrier(); }),
                   one = together(world, 10000, [&] { exchange(world, e); });
      if (world.rank() == 0) {
        barrier.push_back(gate * 1e9);
        small.push_back(one * 1e9);
      }
    }
  });
  row("all_reduce", who + ": a word to the other thread and back", spread(trips), "ns");
  row("all_reduce", who + ": barrier", spread(barrier), "ns");
  row("all_reduce", who + ": of one float", spread(small), "ns");

  for (const std::int64_t bytes : sizes) {
    std::vector<double> reduces, used, adds, copies;
    run_threads(ranks, [&](Threads& world) {
      Arrays buffers(bytes);
      const Exchange e = buffers.message(bytes);
      float *in = reinterpret_cast<float*>(buffers.in.data()), *out = reinterpret_cast<float*>(buffers.out.data());
      for (int round = -1; round < rounds; ++round) {
        const int times = repeats(bytes);
        const double reduce = together(world, times, [&] { exchange(world, e); });
        const double use = together(world, times, [&] { in_use(buffers, bytes, [&] { exchange(world, e); }); });
        const double add = together(world, times, [&] { add_to(out, in, bytes / 4); });
        const double copy = together(world, times, [&] { stream_copy(out, in, bytes); });
        if (world.rank() == 0 && round >= 0) {
          reduces.push_back(reduce);
          used.push_back(use);
          adds.push_back(add * 2 / 3);
          copies.push_back(copy);
        }
      }
    });
    const std::string what = who + ": " + size_text(bytes);
    row("all_reduce", what, per(static_cast<double>(bytes) / 1e9, reduces), "GB/s");
    row("all_reduce", what + ", terms written and sums read", per(static_cast<double>(bytes) / 1e9, used), "GB/s");
    if (bytes < (16 << 20)) continue;
    row("all_reduce", what + ", share of a += b's limit", ratio(adds, reduces), "of 1");
    row("all_reduce", what + ", share of a copy's limit", ratio(copies, reduces), "of 1");
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 7;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0)
    rounds = std::atoi(argv[2]);
  else if (argc != 1)
    return std::fprintf(stderr, "all_reduce: unknown argument '%s'; say all_reduce [--rounds N]\n", argv[1]), 2;
  for (const int ranks : {2, 4}) bench::measure(ranks, rounds);
}
