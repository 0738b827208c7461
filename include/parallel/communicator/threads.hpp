// Ranks as threads of one process: nothing is copied to be sent, every rank reads and writes the others' buffers.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/communicator/threads_group.hpp>

namespace parallel {

/// One rank's place in a group of threads. `start` publishes pointers; `wait` does this rank's share of the work when all have started,
/// and returns when all have done theirs.
///
/// A rank that ends by an exception ends the waits of all ranks of its run, in all groups. Buffers must live until nobody touches them:
/// a group that goes out of scope with exchanges outstanding sees to that, so declare buffers before groups, or call `abandon`.
class Threads {
 public:
  Threads(std::shared_ptr<threading::Group> group, int rank) : own_(std::make_unique<Own>(std::move(group), rank)) {}

  int rank() const { return own_->rank; }
  int size() const { return own_->group->size(); }
  void record(std::vector<Record>* records) { own_->records = records; }
  /// How long this run's ranks wait for each other.
  void deadline(std::chrono::milliseconds limit) { run().deadline = limit; }

  Threads split(int color, int key) {
    if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0");
    auto& seats = own_->group->seats;
    auto& mine = seats[index(rank())];
    mine.color = color, mine.key = key;
    barrier();
    std::vector<int> same;
    for (int r = 0; r < size(); ++r)
      if (seats[index(r)].color == color) same.push_back(r);
    std::stable_sort(same.begin(), same.end(), [&](int a, int b) { return seats[index(a)].key < seats[index(b)].key; });
    if (same[0] == rank()) {
      std::vector<int> members;
      for (const int r : same) members.push_back(member(r));
      mine.child = std::make_shared<threading::Group>(own_->group->run, std::move(members));
    }
    barrier();
    Threads child(seats[index(same[0])].child, static_cast<int>(std::find(same.begin(), same.end(), rank()) - same.begin()));
    barrier();
    mine.child.reset();
    return child;
  }

  /// Throws ExchangeRefused, PeerFailed.
  Ticket start(const Exchange& e) {
    check(e, rank(), size());
    const std::uint64_t number = own_->started;
    if ((own_->outstanding & bit(number)) != 0) refuse(e, "the sixteenth exchange before it is outstanding; wait for that one first");
    if (run().failed()) give_up(&e);
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(rank())];
    post.exchange = e;
    post.begun.store(round(number), std::memory_order_relaxed);
    slot.begun.arrive(target(round(number)));
    own_->outstanding |= bit(number);
    ++own_->started;
    if (own_->records != nullptr) own_->records->push_back(record_of(e, size()));
    return {number};
  }

  /// Throws PeerFailed, Mismatch, Deadline.
  void wait(Ticket ticket) {
    const std::uint64_t number = ticket.number;
    if (number >= own_->started || number + max_outstanding < own_->started || (own_->outstanding & bit(number)) == 0)
      throw Failure("parallel::wait: the ticket is not outstanding; wait once for each start, in the group that started it");
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(rank())];
    const std::uint32_t now = round(number);
    if (size() > 1) meet(slot.begun, now, &post.exchange, [&](int r) { return slot.posts[index(r)].begun.load(); });
    for (const threading::Post& other : slot.posts)
      if (!agree(slot.posts[0].exchange, other.exchange)) disagree(slot);
    auto& touching = run().ranks[index(member(rank()))].touching;
    touching = true;  // before the look at `failed`, as Run::fail writes `failed` before it looks here
    if (run().failed()) touching = false, give_up(&post.exchange);
    share(slot);
    touching = false;
    post.done.store(now, std::memory_order_relaxed);
    slot.done.arrive(target(now));
    if (size() > 1) meet(slot.done, now, &post.exchange, [&](int r) { return slot.posts[index(r)].done.load(); });
    own_->outstanding &= ~bit(number);
  }

  /// Throws PeerFailed, Deadline.
  void barrier() {
    threading::Group& group = *own_->group;
    if (run().failed()) give_up(nullptr);
    auto& mine = group.seats[index(rank())].barriers;
    const std::uint32_t now = mine + 1;
    mine = now;
    group.gate.arrive(target(now));
    meet(group.gate, now, nullptr, [&](int r) { return group.seats[index(r)].barriers.load(); });
  }

  /// Ends the waits of all ranks of the run. When it returns nobody touches this rank's buffers any more.
  void abandon(const std::string& why = "it abandoned its exchanges") { own_->abandon(why); }
  int outstanding() const { return std::popcount(own_->outstanding); }

 private:
  struct Own {
    Own(std::shared_ptr<threading::Group> g, int r)
        : group(std::move(g)), rank(r), terms(group->members.size()), outs(group->members.size()) {}
    Own(const Own&) = delete;
    ~Own() {
      if (outstanding != 0) abandon("it left a group with exchanges outstanding");
    }
    void abandon(const std::string& why) {
      threading::Run& run = *group->run;
      run.fail(group->members[index(rank)], why, run.deadline);
    }

    std::shared_ptr<threading::Group> group;
    int rank;
    std::uint64_t started = 0;
    std::uint32_t outstanding = 0;  // one bit per slot
    std::vector<Record>* records = nullptr;
    std::vector<const void*> terms;
    std::vector<void*> outs;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::uint32_t bit(std::uint64_t number) { return 1u << (number % max_outstanding); }
  static std::uint32_t round(std::uint64_t number) { return static_cast<std::uint32_t>(number / max_outstanding) + 1; }
  std::uint32_t target(std::uint32_t now) const { return now * static_cast<std::uint32_t>(size()); }
  threading::Slot& slot_of(std::uint64_t number) const { return own_->group->slots[number % max_outstanding]; }
  threading::Run& run() const { return *own_->group->run; }
  int member(int r) const { return own_->group->members[index(r)]; }

  /// Waits until all ranks are in the given round of a meeting; `round_of(r)` is the one that rank r is in.
  template <class RoundOf>
  void meet(threading::Meeting& meeting, std::uint32_t now, const Exchange* e, RoundOf round_of) {
    threading::Clock::time_point since{};
    meeting.wait(target(now), run().spins, [&] {
      if (run().failed()) give_up(e);
      const auto arrived = [&](int r) { return static_cast<std::int32_t>(round_of(r) - now) >= 0; };
      for (int r = 0; r < size(); ++r)
        if (run().ranks[index(member(r))].ended && !arrived(r))
          fail(PeerFailed("parallel::wait: " + who(r) + " ended without taking part in " + what(e)), run().deadline);
      const auto time = threading::Clock::now();
      if (since == threading::Clock::time_point{}) since = time;
      if (const std::chrono::milliseconds limit = run().deadline; time - since >= limit) {
        std::vector<int> missing;
        for (int r = 0; r < size(); ++r)
          if (!arrived(r)) missing.push_back(r);
        if (!missing.empty()) late(e, limit, missing);
      }
    });
  }

  /// This rank's part of an exchange that all have started.
  void share(const threading::Slot& slot) {
    const Exchange& mine = slot.posts[index(rank())].exchange;
    const int n = size();
    const std::int64_t width = bytes_of(mine.dtype), block = mine.count / n;
    const auto in = [&](int r, std::int64_t first) { return static_cast<const char*>(slot.posts[index(r)].exchange.in) + first * width; };
    const auto out = [&](int r, std::int64_t first) { return static_cast<char*>(slot.posts[index(r)].exchange.out) + first * width; };
    const auto copy = [&](void* to, const void* from, std::int64_t count) {
      if (count > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(count * width));
    };
    const auto sum = [&](std::int64_t first, std::int64_t count, int copies) {
      for (int r = 0; r < n; ++r) own_->terms[index(r)] = in(r, first);
      ordered_sum(mine.dtype, mine.maximum, own_->outs.data(), copies, own_->terms.data(), n, count);
    };
    if (mine.kind == Collective::all_reduce || mine.kind == Collective::reduce) {
      const std::int64_t line = 64 / width, part = ((mine.count + n - 1) / n + line - 1) / line * line;
      const std::int64_t first = std::min(mine.count, part * rank()), last = std::min(mine.count, first + part);
      const bool one = mine.kind == Collective::reduce;
      for (int r = 0; r < (one ? 1 : n); ++r) own_->outs[index(r)] = out(one ? mine.root : r, first);
      sum(first, last - first, one ? 1 : n);
    } else if (mine.kind == Collective::reduce_scatter) {
      own_->outs[0] = mine.out;
      sum(block * rank(), block, 1);
    } else if (mine.kind == Collective::broadcast) {
      copy(mine.out, in(mine.root, 0), mine.count);
    } else {
      const std::int64_t from = mine.kind == Collective::all_to_all ? block * rank() : 0;
      for (int step = 0; step < n; ++step) {  // each begins with its own block, so that they do not all read from the same rank
        const int r = (rank() + step) % n;
        copy(out(rank(), block * r), in(r, from), block);
      }
    }
  }

  std::string who(int r) const {
    std::string words = "rank " + std::to_string(r) + " of " + std::to_string(size());
    return member(r) == r ? words : words + " (rank " + std::to_string(member(r)) + " of the run)";
  }
  static std::string what(const Exchange* e) { return e != nullptr ? text(*e) : "barrier"; }

  template <class Error>
  [[noreturn]] void fail(const Error& error, std::chrono::milliseconds patience) {
    run().fail(member(rank()), error.what(), patience);
    throw error;
  }
  [[noreturn]] void give_up(const Exchange* e) {
    fail(PeerFailed("parallel::wait: " + who(rank()) + " gave up " + what(e) + ": " + run().reason()), run().deadline);
  }
  [[noreturn]] void late(const Exchange* e, std::chrono::milliseconds limit, const std::vector<int>& missing) {
    std::string words = "parallel::wait: " + who(rank()) + " waited " + text(limit) + " in " + what(e) + " for";
    for (const int r : missing) words += (r == missing[0] ? " " : ", ") + who(r);
    fail(Deadline(words + "; it hangs or calls something else, or the deadline is too short", missing), std::chrono::milliseconds(400));
  }
  [[noreturn]] void disagree(const threading::Slot& slot) {
    std::string words = "parallel::wait: the ranks of a group call different collectives; let all call the same in the same order:";
    for (int r = 0; r < size(); ++r) words += (r > 0 ? ", " : " ") + who(r) + " " + text(slot.posts[index(r)].exchange);
    fail(Mismatch(words), run().deadline);
  }

  std::unique_ptr<Own> own_;
};
static_assert(Communicator<Threads>);

/// Calls f(Threads&) on so many threads, each a rank, and returns when all have ended. If one throws, the waits of the others end with
/// PeerFailed, and the first exception is thrown again here. A rank that hangs cannot be ended: 0.4 s after the others missed it at the
/// deadline (or a deadline after another failure) the program ends with exit code 75 and a sentence.
template <class F>
void run_threads(int ranks, F&& f, std::chrono::milliseconds deadline = default_deadline) {
  if (ranks < 1) throw Failure("parallel::run_threads: there is no rank to run; ask for at least one");
  const auto run = std::make_shared<threading::Run>(static_cast<std::size_t>(ranks), deadline);
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  const auto world = std::make_shared<threading::Group>(run, members);
  const auto target = static_cast<std::uint32_t>(ranks);

  const auto body = [&](int rank) {
    std::optional<Threads> threads;  // outlives the exception, which says more than a group that is left
    try {
      threads.emplace(world, rank);
      f(*threads);
      if (threads->outstanding() != 0)
        throw Failure("parallel::run_threads: a rank ended with exchanges outstanding; wait for every start");
    } catch (...) {
      run->keep(rank, std::current_exception());
    }
    run->ranks[static_cast<std::size_t>(rank)].ended = true;
    run->end.arrive(target);
  };
  std::vector<std::thread> threads;
  for (const int rank : members) {
    try {
      threads.emplace_back(body, rank);
    } catch (...) {
      run->keep(rank, std::current_exception());
      for (int r = rank; r < ranks; ++r) run->end.arrive(target);
      break;
    }
  }
  run->end.wait(target, false, [&] {
    if (!run->overdue()) return;
    std::fprintf(stderr, "parallel::run_threads: a rank does not end although %s\n", run->reason().c_str());
    std::_Exit(75);
  });
  for (std::thread& thread : threads) thread.join();
  if (const auto error = run->error()) std::rethrow_exception(error);
}

}  // namespace parallel
