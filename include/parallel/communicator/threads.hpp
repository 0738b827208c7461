// Ranks as threads of one process: nothing is copied to be sent, every rank reads and writes the others' buffers.
#pragma once
#include <algorithm>
#include <optional>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/threads_message.hpp>
#include <parallel/communicator/unfinished.hpp>

namespace parallel {

/// One rank's place in a group of threads. `start` publishes pointers. `wait` does this rank's share of the work when
/// all have started, and returns when all have done theirs; of a message, when either rank has copied it.
///
/// A rank that ends by an exception ends the waits of all ranks of its run, in all groups. Buffers must live until
/// nobody touches them: a group that goes out of scope with exchanges outstanding sees to that, so declare buffers
/// before groups, or call `abandon`.
class Threads {
 public:
  Threads(std::shared_ptr<threading::Group> group, int rank) : own_(std::make_unique<Own>(std::move(group), rank)) {}

  int rank() const { return own_->place.rank; }
  int size() const { return own_->place.size(); }
  void record(std::vector<Record>* records) { own_->records = records; }
  /// How long this run's ranks wait for each other.
  void deadline(std::chrono::milliseconds limit) { run().deadline = limit; }
  /// What this rank is in from now on; gives back what it was in.
  LongPhase within(const LongPhase& now) {
    threading::Run::Rank& mine = run().ranks[index(member(rank()))];
    return {mine.phase.exchange(now.name), mine.limit.exchange(now.limit)};
  }
  /// What the buffers of this rank are, here and in groups that are split from now on: of the host unless said.
  void buffers(std::shared_ptr<Buffers> those) { own_->place.buffers = std::move(those); }

  Threads split(int color, int key) {
    if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0", exit_code::internal);
    auto& seats = own_->place.group->seats;
    auto& mine = seats[index(rank())];
    mine.color = color;
    mine.key = key;
    barrier();
    std::vector<int> same;
    for (int r = 0; r < size(); ++r)
      if (seats[index(r)].color == color) same.push_back(r);
    std::stable_sort(same.begin(), same.end(), [&](int a, int b) { return seats[index(a)].key < seats[index(b)].key; });
    if (same[0] == rank()) {
      std::vector<int> members;
      for (const int r : same) members.push_back(member(r));
      mine.child = std::make_shared<threading::Group>(own_->place.group->run, std::move(members));
    }
    barrier();
    Threads child(seats[index(same[0])].child,
                  static_cast<int>(std::find(same.begin(), same.end(), rank()) - same.begin()));
    barrier();
    mine.child.reset();
    child.buffers(own_->place.buffers);
    return child;
  }

  /// Throws ExchangeRefused, PeerFailed.
  Ticket start(const Exchange& e) {
    check(e, rank(), size());
    const bool message = point_to_point(e.kind);
    if (!message) own_->collectives.need_place(e);
    if (run().failed()) own_->place.give_up(&e);
    own_->place.buffers->ready();
    Ticket ticket = message ? threading::start_message(own_->place, e) : start_collective(e);
    if (size() > 1) ticket.order = history().start(e, size());
    if (message) ++own_->messages;
    if (own_->records != nullptr) own_->records->push_back(record_of(e, size()));
    return ticket;
  }

  /// Throws PeerFailed, Mismatch, Deadline.
  void wait(Ticket ticket) {
    if (ticket.channel < 0) {
      wait_collective(ticket.number);
    } else {
      threading::wait_message(own_->place, ticket);
      --own_->messages;
    }
    history().end(ticket.order);
  }

  /// Throws PeerFailed, Mismatch, Deadline.
  void aside(const Exchange& e) {
    if (own_->aside == nullptr) own_->aside = std::make_unique<Threads>(own_->place.group->aside(), rank());
    own_->aside->wait(own_->aside->start(e));
    if (own_->records != nullptr) own_->records->push_back(record_of(e, size()));
  }

  /// Throws PeerFailed, Deadline.
  void barrier() {
    threading::Group& group = *own_->place.group;
    if (run().failed()) own_->place.give_up(nullptr);
    auto& mine = group.seats[index(rank())].barriers;
    const std::uint32_t now = mine + 1;
    mine = now;
    const std::uint64_t order = size() > 1 ? history().start_barrier(size()) : 0;
    group.gate.arrive(target(now));
    meet(group.gate, now, nullptr, [&](int r) { return group.seats[index(r)].barriers.load(); });
    history().end(order);
  }

  /// Ends the waits of all ranks of the run. When it returns nobody touches this rank's buffers any more.
  void abandon(const std::string& why = "it abandoned its exchanges") { own_->place.abandon(why); }
  int outstanding() const { return own_->outstanding(); }

 private:
  struct Own {
    Own(std::shared_ptr<threading::Group> g, int r)
        : place{std::move(g), r}, terms(threading::index(place.size())), outs(threading::index(place.size())) {}
    Own(const Own&) = delete;
    ~Own() {
      if (outstanding() != 0) place.abandon("it left a group with exchanges outstanding");
    }
    int outstanding() const { return collectives.count() + messages; }

    threading::Place place;
    Outstanding collectives;
    int messages = 0;  // outstanding on all channels
    std::vector<Record>* records = nullptr;
    std::vector<const void*> terms;
    std::vector<void*> outs;
    std::unique_ptr<Threads> aside;
  };

  static std::size_t index(int i) { return threading::index(i); }
  std::uint32_t target(std::uint32_t now) const { return now * static_cast<std::uint32_t>(size()); }
  threading::Slot& slot_of(std::uint64_t number) const { return own_->place.group->slots[number % max_outstanding]; }
  threading::Run& run() const { return own_->place.run(); }
  int member(int r) const { return own_->place.member(r); }
  History& history() const { return run().ranks[index(member(rank()))].history; }

  Ticket start_collective(const Exchange& e) {
    const std::uint64_t number = own_->collectives.start();
    const std::uint32_t now = threading::round(number);
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(rank())];
    post.exchange = e;
    post.begun.store(now, std::memory_order_relaxed);
    slot.begun.arrive(target(now));
    return {number};
  }

  void wait_collective(std::uint64_t number) {
    Outstanding::need(own_->collectives.contains(number));
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(rank())];
    const std::uint32_t now = threading::round(number);
    if (size() > 1) meet(slot.begun, now, &post.exchange, [&](int r) { return slot.posts[index(r)].begun.load(); });
    for (const threading::Post& other : slot.posts)
      if (!same_call(slot.posts[0].exchange, other.exchange)) disagree(slot);
    own_->place.touch(post.exchange, [&] { share(slot), own_->place.buffers->done(); });
    post.done.store(now, std::memory_order_relaxed);
    slot.done.arrive(target(now));
    if (size() > 1) meet(slot.done, now, &post.exchange, [&](int r) { return slot.posts[index(r)].done.load(); });
    own_->collectives.end(number);
  }

  /// Waits until all ranks are in the given round of a meeting; `round_of(r)` is the one that rank r is in.
  template <class RoundOf>
  void meet(threading::Meeting& meeting, std::uint32_t now, const Exchange* e, RoundOf round_of) {
    own_->place.meet(meeting, target(now), e, [&](int r) { return static_cast<std::int32_t>(round_of(r) - now) >= 0; });
  }

  /// This rank's part of an exchange that all have started.
  void share(const threading::Slot& slot) {
    const Exchange& mine = slot.posts[index(rank())].exchange;
    Buffers& buffers = *own_->place.buffers;
    const int n = size();
    const std::int64_t width = bytes_of(mine.dtype), block = block_of(mine, n);
    const auto in = [&](int r, std::int64_t first) {
      return static_cast<const char*>(slot.posts[index(r)].exchange.in) + first * width;
    };
    const auto out = [&](int r, std::int64_t first) {
      return static_cast<char*>(slot.posts[index(r)].exchange.out) + first * width;
    };
    const auto copy = [&](void* to, const void* from, std::int64_t count) {
      if (count > 0 && to != from) buffers.copy(to, from, count * width);
    };
    const auto sum = [&](std::int64_t first, std::int64_t count, int copies) {
      for (int r = 0; r < n; ++r) own_->terms[index(r)] = in(r, first);
      buffers.sum(mine.dtype, mine.maximum, own_->outs.data(), copies, own_->terms.data(), n, count);
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
      // each begins with its own block, so that they do not all read from the same rank
      for (int step = 0; step < n; ++step) {
        const int r = (rank() + step) % n;
        copy(out(rank(), block * r), in(r, from), block);
      }
    }
  }

  [[noreturn]] void disagree(const threading::Slot& slot) {
    std::string words =
        "parallel::wait: the ranks of a group call different collectives; let all call the same in the same order:";
    for (int r = 0; r < size(); ++r)
      words += (r > 0 ? ", " : " ") + own_->place.who(r) + " " + text_with_line(slot.posts[index(r)].exchange);
    own_->place.fail(Mismatch(words), run().deadline);
  }

  std::unique_ptr<Own> own_;
};
static_assert(Communicator<Threads>);

/// Calls f(Threads&) on so many threads, each a rank, and returns when all have ended. If one throws, the waits of the
/// others end with PeerFailed, and the first exception is thrown again here. A rank that hangs cannot be ended: 0.4 s
/// after the others missed it at the deadline (or a deadline after another failed, or after another ended and nobody
/// starts exchanges any more) the program ends with exit code 75 and a sentence. A rank that calls exit(0) ends it
/// with 70.
template <class F>
void run_threads(int ranks, F&& f, std::chrono::milliseconds deadline = default_deadline) {
  if (ranks < 1)
    throw Failure("parallel::run_threads: there is no rank to run; ask for at least one", exit_code::configuration);
  const auto run = std::make_shared<threading::Run>(static_cast<std::size_t>(ranks), deadline);
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  const auto world = std::make_shared<threading::Group>(run, members);
  world->aside()->outlives = true;
  const Unfinished unfinished;

  const auto body = [&](int rank) {
    Unfinished::is_rank(rank, ranks);
    run->begin.arrive_and_wait();    // the deadline does not run while threads are started
    std::optional<Threads> threads;  // outlives the exception, which says more than a group that is left
    try {
      threads.emplace(world, rank);
      f(*threads);
      if (threads->outstanding() != 0)
        throw Failure("parallel::run_threads: a rank ended with exchanges outstanding; wait for every start",
                      exit_code::internal);
      run->returned(rank);
      agreeing::end(*threads);
    } catch (...) {
      run->keep(rank, std::current_exception());
    }
    run->ended(rank);
  };
  std::vector<std::thread> threads;
  for (const int rank : members) {
    try {
      threads.emplace_back(body, rank);
    } catch (const std::exception& error) {
      const std::string words = "parallel::run_threads: the thread of " + run->who(rank) + " could not be started: ";
      run->keep(rank, std::make_exception_ptr(Failure(words + error.what() + "; ask for fewer ranks")));
      run->begin.count_down(ranks - rank);
      for (int r = rank; r < ranks; ++r) run->ended(r);
      break;
    }
  }
  run->wait_for_all();
  for (std::thread& thread : threads) thread.join();
  run->throw_kept();
}

}  // namespace parallel
