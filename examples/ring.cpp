// The all-reduce by hand: round a ring, up and down a tree, by halving and doubling; beside the library's own.
//
// A plan says all_reduce, and a communicator carries it out. This is what is behind that word: ranks that send each
// other messages and add up what comes. The ring's two phases are printed as they happened, read out of the ranks'
// buffers: every rank begins with a digit of its own, so a block's number says whose terms are in it. Then the three
// ways and the library's all-reduce give the same numbers, with what each rank sends; the ring and halving send
// 2(n-1)/n of the message, which is the least there is, in 2(n-1) and in 2 log2 n steps (Patarasuk and Yuan, 2009;
// Thakur, Rabenseifner and Gropp, 2005). --measure says which is when the fastest.
//
//   meson compile -C build/demo examples/ring && build/demo/examples/ring [--measure]
//   mpirun -n 4 build/demo/examples/ring --mpi
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/communicator/threads.hpp>
#include <parallel/run/failure.hpp>

#include "command_line.hpp"

using namespace parallel;

using Numbers = std::vector<float>;
/// What is told behind each step: nothing where it is timed.
using Told = std::function<void(const std::string&)>;

/// One rank's ends of messages, and the ways to add up with them.
template <Communicator World>
class ByHand {
 public:
  explicit ByHand(World& world) : world_(world), rank_(world.rank()), ranks_(world.size()) {}

  /// Phase 1 adds: in each step a rank hands the block on that it has just added to, and behind n-1 steps has one whole
  /// sum. Phase 2 copies: the sums go once round.
  void ring(Numbers& numbers, const Told& told) {
    const int next = (rank_ + 1) % ranks_, before = (rank_ + ranks_ - 1) % ranks_;
    for (int step = 0; step + 1 < ranks_; ++step) {
      const int sent = block(rank_ - step), added = block(rank_ - step - 1);
      swap(next, part(numbers, sent, 1), before, room(numbers, added, 1));
      add(part(numbers, added, 1));
      told("add " + std::to_string(step + 1));
    }
    for (int step = 0; step + 1 < ranks_; ++step) {
      const int sent = block(rank_ + 1 - step), copied = block(rank_ - step);
      swap(next, part(numbers, sent, 1), before, part(numbers, copied, 1));
      told("copy " + std::to_string(step + 1));
    }
  }

  /// All that a rank has goes up to a parent, which adds, and from the root the sum comes down again.
  void tree(Numbers& numbers, const Told& told) {
    int distance = 1;
    for (; distance < ranks_; distance *= 2) {
      if (rank_ % (2 * distance) == distance) send(rank_ - distance, part(numbers, 0, ranks_));
      if (rank_ % (2 * distance) == 0 && rank_ + distance < ranks_) {
        receive(rank_ + distance, room(numbers, 0, ranks_));
        add(part(numbers, 0, ranks_));
      }
      told("up " + std::to_string(distance));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
      if (rank_ % (2 * distance) == 0 && rank_ + distance < ranks_) send(rank_ + distance, part(numbers, 0, ranks_));
      if (rank_ % (2 * distance) == distance) receive(rank_ - distance, part(numbers, 0, ranks_));
      told("down " + std::to_string(distance));
    }
  }

  /// Two ranks share what they have to add, each a half of it, then each two of these halves; and back. The ranks are a
  /// power of two.
  void halving(Numbers& numbers, const Told& told) {
    int first = 0;
    for (int half = ranks_ / 2; half > 0; half /= 2) {
      const int other = rank_ ^ half, own = (rank_ & half) == 0 ? first : first + half,
                given = (rank_ & half) == 0 ? first + half : first;
      swap(other, part(numbers, given, half), other, room(numbers, own, half));
      add(part(numbers, own, half));
      first = own;
      told("halve " + std::to_string(half));
    }
    for (int half = 1; half < ranks_; half *= 2) {
      const int other = rank_ ^ half, got = (rank_ & half) == 0 ? first + half : first - half;
      swap(other, part(numbers, first, half), other, part(numbers, got, half));
      first = std::min(first, got);
      told("double " + std::to_string(half));
    }
  }

  void library(Numbers& numbers, const Told&) {
    exchange(world_, {.in = numbers.data(), .out = numbers.data(), .count = count(numbers)});
  }

 private:
  struct Part {
    float* first;
    std::int64_t count;
  };
  static std::int64_t count(const Numbers& numbers) { return static_cast<std::int64_t>(numbers.size()); }
  int block(int number) const { return (number % ranks_ + ranks_) % ranks_; }
  /// So many of the n blocks, which need not be equally long.
  Part part(Numbers& numbers, int first_block, int blocks) const {
    const std::int64_t all = count(numbers), begin = all * first_block / ranks_,
                       end = all * (first_block + blocks) / ranks_;
    return {numbers.data() + begin, end - begin};
  }
  /// As much room as such a part takes, for what is to be added to it.
  Part room(Numbers& numbers, int first_block, int blocks) {
    const Part same = part(numbers, first_block, blocks);
    room_.resize(std::max(room_.size(), static_cast<std::size_t>(same.count)));
    return {room_.data(), same.count};
  }
  void add(Part to) const {
    for (std::int64_t i = 0; i < to.count; ++i) to.first[i] += room_[static_cast<std::size_t>(i)];
  }
  static Exchange sending(int to, Part what) {
    return {.kind = Collective::send, .in = what.first, .count = what.count, .peer = to};
  }
  static Exchange receiving(int from, Part what) {
    return {.kind = Collective::receive, .out = what.first, .count = what.count, .peer = from};
  }
  void send(int to, Part what) { exchange(world_, sending(to, what)); }
  void receive(int from, Part what) { exchange(world_, receiving(from, what)); }
  /// Both are under way at one time, so ranks that send in a circle do not wait in one.
  void swap(int to, Part what, int from, Part into) {
    const Ticket received = world_.start(receiving(from, into)), sent = world_.start(sending(to, what));
    world_.wait(received);
    world_.wait(sent);
  }

  World& world_;
  int rank_, ranks_;
  Numbers room_{};
};

template <class World>
struct Way {
  const char* name;
  void (ByHand<World>::*reduce)(Numbers&, const Told&);
  bool power_of_two = false;
};
template <class World>
std::vector<Way<World>> ways(int ranks) {
  std::vector<Way<World>> all = {{"ring", &ByHand<World>::ring}, {"tree", &ByHand<World>::tree}};
  if ((ranks & (ranks - 1)) == 0) all.push_back({"halving and doubling", &ByHand<World>::halving});
  all.push_back({"the library's", &ByHand<World>::library});
  return all;
}

/// The blocks of all ranks behind each step of the ring, in digits: 0110 has the terms of ranks 1 and 2.
template <Communicator World>
void show_ring(World& world) {
  const int ranks = world.size();
  Numbers numbers(static_cast<std::size_t>(ranks)), seen(numbers.size() * numbers.size());
  float digit = 1;
  for (int r = 0; r < world.rank(); ++r) digit *= 10;
  std::fill(numbers.begin(), numbers.end(), digit);
  const auto told = [&](const std::string& step) {
    exchange(world, {.kind = Collective::all_gather,
                     .in = numbers.data(),
                     .out = seen.data(),
                     .count = static_cast<std::int64_t>(seen.size())});
    if (world.rank() != 0) return;
    std::string line;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      char block[32];
      std::snprintf(block, sizeof block, "%s%0*d", i % numbers.size() == 0 ? "   " : " ", ranks,
                    static_cast<int>(seen[i]));
      line += block;
    }
    std::printf("%-8s%s\n", step.c_str(), line.c_str());
  };
  if (world.rank() == 0) {
    std::printf("the ring; of each rank its %d blocks\n%-8s", ranks, "");
    const int width = ranks * (ranks + 1) - 1;
    for (int r = 0; r < ranks; ++r)
      std::printf("   %*s", r + 1 < ranks ? -width : 0, ("rank " + std::to_string(r)).c_str());
    std::printf("\n");
  }
  told("begin");
  ByHand(world).ring(numbers, told);
}

/// Sums of numbers that add up exactly in any order, so that all ways give the same.
template <Communicator World>
void compare(World& world, std::int64_t count) {
  const auto given = [&](int rank, std::int64_t i) { return static_cast<float>((i * 37 + rank * 53) % 101) / 8; };
  if (world.rank() == 0)
    std::printf("\nall-reduce of %d numbers   messages   sent by a rank   received by a rank\n",
                static_cast<int>(count));
  std::vector<Record> records;
  records.reserve(1024);
  for (const Way<World>& way : ways<World>(world.size())) {
    Numbers numbers(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = given(world.rank(), i);
    records.clear();
    world.record(&records);
    ByHand<World> by_hand(world);
    (by_hand.*way.reduce)(numbers, [](const std::string&) {});
    world.record(nullptr);
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int r = 0; r < world.size(); ++r) sum += given(r, i);
      if (numbers[static_cast<std::size_t>(i)] != sum)
        throw Failure(std::string(way.name) + " adds up to something else");
    }
    // messages, bytes sent, bytes received: the most of any rank
    double most[3] = {0, 0, 0};
    for (const Record& r : records) {
      if (r.kind == Collective::send) most[0] += 1, most[1] += static_cast<double>(r.bytes);
      if (r.kind == Collective::receive) most[2] += static_cast<double>(r.bytes);
    }
    exchange(world, {.in = most, .out = most, .count = 3, .dtype = DType::f64, .maximum = true});
    if (world.rank() != 0) continue;
    if (way.reduce == &ByHand<World>::library)
      std::printf("%-24s %10s\n", way.name, "its own");
    else
      std::printf("%-24s %10.0f %16.0f %20.0f\n", way.name, most[0], most[1], most[2]);
  }
}

/// Microseconds, the median of many turns; all ways take turns, so that what else the machine does meets each.
template <Communicator World>
void measure(World& world, int turns) {
  if (world.rank() == 0) {
    std::printf("\n%-12s", "bytes");
    for (const Way<World>& way : ways<World>(world.size())) std::printf(" %22s", way.name);
    std::printf("\n");
  }
  for (std::int64_t count = 16; count <= 4 << 20; count *= 8) {
    Numbers numbers(static_cast<std::size_t>(count), 1.0F);
    ByHand<World> by_hand(world);
    const auto all = ways<World>(world.size());
    std::vector<std::vector<double>> taken(all.size());
    for (int turn = -1; turn < turns; ++turn)
      for (std::size_t w = 0; w < all.size(); ++w) {
        std::fill(numbers.begin(), numbers.end(), 1.0F);
        world.barrier();
        const auto begin = std::chrono::steady_clock::now();
        (by_hand.*all[w].reduce)(numbers, [](const std::string&) {});
        world.barrier();
        const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
        if (turn >= 0) taken[w].push_back(time.count());
      }
    if (world.rank() != 0) continue;
    std::printf("%-12d", static_cast<int>(4 * count));
    for (std::vector<double>& times : taken) {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
      std::printf(" %19.1f us", times[times.size() / 2]);
    }
    std::printf("\n");
  }
}

int main(int argc, char** argv) {
  return guarded("ring", [&] {
    int ranks = 4, count = 1000, turns = 0;
    bool mpi = false;
    CommandLine arguments("All-reduces by hand, and the library's.");
    arguments.number("--ranks", ranks, "threads", 1, 7);  // whose digits a float has
    arguments.number("--count", count, "numbers that are added up", 0, 1 << 24);
    arguments.number("--measure", turns, "also time each way, as the median of so many turns", 1, 10000);
    arguments.flag("--mpi", mpi, "ranks are the processes of mpirun instead of threads");
    if (!arguments.read(argc, argv)) return exit_code::done;
    const auto rank = [&](auto& world) {
      show_ring(world);
      compare(world, count);
      if (turns > 0) measure(world, turns);
    };
    if (!mpi) {
      run_threads(ranks, rank);
      return exit_code::done;
    }
#if defined(WITH_MPI)
    run_mpi(rank, {.ranks = ranks});
    return exit_code::done;
#else
    throw Failure("this build has no MPI; install libboost-mpi-dev and configure again, or leave --mpi away",
                  exit_code::unavailable);
#endif
  });
}

// Expected output:
// the ring; of each rank its 4 blocks
//            rank 0                rank 1                rank 2                rank 3
// begin      0001 0001 0001 0001   0010 0010 0010 0010   0100 0100 0100 0100   1000 1000 1000 1000
// add 1      0001 0001 0001 1001   0011 0010 0010 0010   0100 0110 0100 0100   1000 1000 1100 1000
// add 2      0001 0001 1101 1001   0011 0010 0010 1011   0111 0110 0100 0100   1000 1110 1100 1000
// add 3      0001 1111 1101 1001   0011 0010 1111 1011   0111 0110 0100 1111   1111 1110 1100 1000
// copy 1     1111 1111 1101 1001   0011 1111 1111 1011   0111 0110 1111 1111   1111 1110 1100 1111
// copy 2     1111 1111 1101 1111   1111 1111 1111 1011   0111 1111 1111 1111   1111 1110 1111 1111
// copy 3     1111 1111 1111 1111   1111 1111 1111 1111   1111 1111 1111 1111   1111 1111 1111 1111
//
// all-reduce of 1000 numbers   messages   sent by a rank   received by a rank
// ring                              6             6000                 6000
// tree                              2             8000                 8000
// halving and doubling              4             6000                 6000
// the library's               its own
