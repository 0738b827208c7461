// What a rank of threads does; threads.hpp says what it promises.
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/quicker_way.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/communicator/threads_message.hpp>
#include <parallel/communicator/unfinished.hpp>

namespace parallel::internals {

namespace threading {
/// Which rank of which run this thread is.
struct RankOfThread {
  const Run* run = nullptr;
  int rank = 0;
};
inline thread_local RankOfThread rank_of_thread{};
}  // namespace threading

struct Threads::Own {
  Own(std::shared_ptr<threading::Group> g, int r)
      : place{std::move(g), r}, terms(threading::index(place.size())), outs(threading::index(place.size())) {}
  Own(const Own&) = delete;
  ~Own() {
    if (outstanding() != 0) place.abandon("it left a group with exchanges outstanding");
  }
  int outstanding() const { return collectives.count() + messages; }

  static std::size_t index(int i) { return threading::index(i); }
  static auto begun(const threading::Slot& slot, std::uint32_t now) {
    return [&slot, now](int r) { return threading::reached(slot.posts[index(r)].begun, now); };
  }

  threading::Slot& slot_of(std::uint64_t number) const { return place.group->slots[number % max_outstanding]; }

  threading::Run& run() const { return place.run(); }

  int member(int r) const { return place.member(r); }

  History& history() const { return run().ranks[index(member(place.rank))].history; }

  Ticket start_collective(const Exchange& e) {
    const std::uint64_t number = collectives.start();
    const std::uint32_t now = threading::round(number, max_outstanding);
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(place.rank)];
    if (number >= max_outstanding) await_ended(number - max_outstanding, post.exchange);
    post.exchange = e;
    post.common = common(e);
    const std::int64_t bytes = elements_in(e, place.rank, place.size()) * bytes_of(e.dtype);
    post.brought = bytes <= threading::Post::room && place.buffers->of_host();
    if (post.brought && bytes > 0) std::memcpy(post.brings, e.in, static_cast<std::size_t>(bytes));
    post.begun = now;
    place.arrive(slot.sleepers, begun(slot, now));
    return {number};
  }

  void wait_collective(std::uint64_t number) {
    Outstanding::need(collectives.contains(number));
    threading::Slot& slot = slot_of(number);
    threading::Post& post = slot.posts[index(place.rank)];
    const std::uint32_t now = threading::round(number, max_outstanding);
    place.meet(slot.sleepers, &post.exchange, begun(slot, now));
    bool brought = true;
    for (const threading::Post& other : slot.posts) {
      if (post.common != other.common) disagree(slot);
      brought = brought && other.brought;
    }
    if (brought) {
      share<true>(slot);
      post.done.store(now, std::memory_order_relaxed);  // for the next who looks, so that rounds stay comparable
    } else {
      place.touch(post.exchange, [&] {
        share<false>(slot);
        place.buffers->done();
      });
      const auto done = [&](int r) { return threading::reached(slot.posts[index(r)].done, now); };
      post.done = now;
      place.arrive(slot.sleepers, done);
      place.meet(slot.sleepers, &post.exchange, done);
    }
    collectives.end(number);
    if (place.size() == 1) return;
    place.group->seats[index(place.rank)].ended = collectives.first();
    place.group->before_start.wake();
  }

  /// Waits until no rank reads any more what stood in the place of that number. Where one never ends it, it is the
  /// exchange that stood there which is missed.
  void await_ended(std::uint64_t number, const Exchange& e) {
    if (number < all_ended || place.size() == 1) return;
    const auto ended = [&](int r) { return place.group->seats[index(r)].ended.load(); };
    place.meet(place.group->before_start, &e, [&](int r) { return ended(r) > number; });
    all_ended = ended(0);
    for (int r = 1; r < place.size(); ++r) all_ended = std::min(all_ended, ended(r));
  }

  static constexpr std::int64_t seen_in_time = 64 << 10;  ///< bytes; of fewer the meetings take the time
  /// Whether sums are written into the caches where cores share one, and else past them. All ranks say the same.
  bool two_ways(const threading::Slot& slot) const {
    const Exchange& e = slot.posts[0].exchange;
    const std::int64_t bytes = e.count * bytes_of(e.dtype);
    if (e.kind != Collective::all_reduce || place.size() == 1 || is_half(e.dtype)) return false;
    if (bytes < seen_in_time || bytes >= more_than_caches) return false;
    for (const threading::Post& post : slot.posts)
      if (post.exchange.in == post.exchange.out) return false;
    return true;
  }

  /// This rank's part of an exchange that all have started. Where all have brought what they bring to their posts, it
  /// reads nothing else and writes its own buffer alone, so that nobody waits for its end.
  template <bool brought>
  void share(const threading::Slot& slot) {
    const Exchange& mine = slot.posts[index(place.rank)].exchange;
    Buffers& buffers = *place.buffers;
    const int n = place.size();
    const std::int64_t width = bytes_of(mine.dtype), block = block_of(mine, n);
    const auto in = [&](int r, std::int64_t first) {
      const threading::Post& post = slot.posts[index(r)];
      return (brought ? reinterpret_cast<const char*>(post.brings) : static_cast<const char*>(post.exchange.in)) +
             first * width;
    };
    const auto out = [&](int r, std::int64_t first) {
      return static_cast<char*>(slot.posts[index(r)].exchange.out) + first * width;
    };
    const auto copy = [&](void* to, const void* from, std::int64_t count) {
      if (count > 0 && to != from) buffers.copy(to, from, count * width);
    };
    const bool two = !brought && two_ways(slot);
    const std::uint64_t piece = two ? pieces++ : 0;
    const std::int64_t past_caches_from = two && way.past_caches(piece) ? 0 : more_than_caches;
    const auto sum = [&](std::int64_t first, std::int64_t count, int copies) {
      for (int r = 0; r < n; ++r) terms[index(r)] = in(r, first);
      buffers.sum(mine.dtype, mine.maximum, outs.data(), copies, terms.data(), n, count, past_caches_from);
    };
    if (brought && (mine.kind == Collective::all_reduce || mine.kind == Collective::reduce)) {
      outs[0] = mine.out;
      if (mine.kind == Collective::all_reduce || place.rank == mine.root) sum(0, mine.count, 1);
    } else if (mine.kind == Collective::all_reduce || mine.kind == Collective::reduce) {
      const std::int64_t line = 64 / width, part = ((mine.count + n - 1) / n + line - 1) / line * line;
      const std::int64_t first = std::min(mine.count, part * place.rank), last = std::min(mine.count, first + part);
      const bool one = mine.kind == Collective::reduce;
      for (int r = 0; r < (one ? 1 : n); ++r) outs[index(r)] = out(one ? mine.root : r, first);
      const auto all = [&] { sum(first, last - first, one ? 1 : n); };
      two ? way.measure(piece, mine.count * width, all) : all();
      if (two) way.finished(piece);
    } else if (mine.kind == Collective::reduce_scatter) {
      outs[0] = mine.out;
      sum(block * place.rank, block, 1);
    } else if (mine.kind == Collective::broadcast) {
      copy(mine.out, in(mine.root, 0), mine.count);
    } else if (mine.kind == Collective::scatter) {
      copy(mine.out, in(mine.root, block * place.rank), block);
    } else if (mine.kind == Collective::rotate) {
      copy(mine.out, in((place.rank + n - 1) % n, 0), block);
    } else if (mine.kind != Collective::gather || place.rank == mine.root) {
      const std::int64_t from = mine.kind == Collective::all_to_all ? block * place.rank : 0;
      // each begins with its own block, so that they do not all read from the same rank
      for (int step = 0; step < n; ++step) {
        const int r = (place.rank + step) % n;
        copy(out(place.rank, block * r), in(r, from), block);
      }
    }
  }

  [[noreturn]] void disagree(const threading::Slot& slot) {
    std::string words =
        "parallel::wait: the ranks of a group call different collectives; let all call the same in the same order:";
    for (int r = 0; r < place.size(); ++r)
      words += (r > 0 ? ", " : " ") + place.who(r) + " " + text_with_line(slot.posts[index(r)].exchange);
    place.fail(Mismatch(words), run().deadline);
  }

  threading::Place place;
  Outstanding collectives{max_outstanding};
  std::uint64_t all_ended = 0;  // so many every rank of the group, when this one looked last
  int messages = 0;             // outstanding on all channels
  std::vector<Record>* records = nullptr;
  std::vector<const void*> terms;
  std::vector<void*> outs;
  QuickerWay way{};  // into the caches, or past them
  std::uint64_t pieces = 0;
  std::unique_ptr<Threads> aside;
};

PARALLEL_INLINE Threads::Threads(std::shared_ptr<threading::Group> group, int rank)
    : rank_(rank), size_(0), own_(std::make_unique<Own>(std::move(group), rank)) {
  size_ = own_->place.size();
}
PARALLEL_INLINE Threads::Threads(Threads&& other) noexcept = default;
PARALLEL_INLINE Threads& Threads::operator=(Threads&& other) noexcept = default;
PARALLEL_INLINE Threads::~Threads() = default;
PARALLEL_INLINE Threads::Own& Threads::own() const {
  if (own_ == nullptr)
    throw Failure("a communicator is used that was moved away; hand it on as Threads&, or use what it was moved to",
                  exit_code::internal);
  const threading::RankOfThread& thread = threading::rank_of_thread;
  if (thread.run == &own_->run() && thread.rank != own_->member(rank_))
    throw Failure("the communicator of " + own_->run().who(own_->member(rank_)) + " is used by the thread of rank " +
                      std::to_string(thread.rank) +
                      "; let each rank use the one that it was given, and what it made of it",
                  exit_code::internal);
  return *own_;
}

PARALLEL_INLINE void Threads::record(std::vector<Record>* records) { own().records = records; }
PARALLEL_INLINE void Threads::deadline(std::chrono::milliseconds limit) { own().run().deadline = limit; }
PARALLEL_INLINE LongPhase Threads::within(const LongPhase& now) {
  threading::Run::Rank& mine = own().run().ranks[threading::index(own().member(rank()))];
  return {mine.phase.exchange(now.name), mine.limit.exchange(now.limit)};
}
PARALLEL_INLINE void Threads::buffers(std::shared_ptr<Buffers> those) { own().place.buffers = std::move(those); }
PARALLEL_INLINE Threads Threads::split(int color, int key) {
  Own& own = this->own();
  if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0", exit_code::internal);
  auto& seats = own.place.group->seats;
  auto& mine = seats[threading::index(rank())];
  mine.color = color;
  mine.key = key;
  barrier();
  std::vector<int> same;
  for (int r = 0; r < size(); ++r)
    if (seats[threading::index(r)].color == color) same.push_back(r);
  std::stable_sort(same.begin(), same.end(),
                   [&](int a, int b) { return seats[threading::index(a)].key < seats[threading::index(b)].key; });
  if (same[0] == rank()) {
    std::vector<int> members;
    members.reserve(same.size());
    for (const int r : same) members.push_back(own.member(r));
    mine.child = std::make_shared<threading::Group>(own.place.group->run, std::move(members));
  }
  barrier();
  Threads child(seats[threading::index(same[0])].child,
                static_cast<int>(std::find(same.begin(), same.end(), rank()) - same.begin()));
  barrier();
  mine.child.reset();
  child.buffers(own.place.buffers);
  return child;
}
PARALLEL_INLINE Ticket Threads::start(const Exchange& e) {
  Own& own = this->own();
  check(e, rank(), size());
  const bool message = point_to_point(e.kind);
  if (!message) own.collectives.need_place(e);
  if (own.run().failed()) own.place.give_up(&e);
  own.place.buffers->ready();
  Ticket ticket = message ? threading::start_message(own.place, e) : own.start_collective(e);
  if (size() > 1) ticket.order = own.history().start(e, size());
  if (message) ++own.messages;
  if (own.records != nullptr) own.records->push_back(record_of(e, size()));
  return ticket;
}
PARALLEL_INLINE void Threads::wait(Ticket ticket) {
  Own& own = this->own();
  if (ticket.channel < 0) {
    own.wait_collective(ticket.number);
  } else {
    threading::wait_message(own.place, ticket);
    --own.messages;
  }
  own.history().end(ticket.order);
}
PARALLEL_INLINE void Threads::aside(const Exchange& e) {
  Own& own = this->own();
  if (own.aside == nullptr) own.aside = std::make_unique<Threads>(own.place.group->aside(), rank());
  own.aside->wait(own.aside->start(e));
  if (own.records != nullptr) own.records->push_back(record_of(e, size()));
}
PARALLEL_INLINE void Threads::barrier() {
  Own& own = this->own();
  threading::Group& group = *own.place.group;
  if (own.run().failed()) own.place.give_up(nullptr);
  auto& mine = group.seats[threading::index(rank())].barriers;
  const std::uint32_t now = mine + 1;
  mine = now;
  const std::uint64_t order = size() > 1 ? own.history().start_barrier(size()) : 0;
  const auto arrived = [&](int r) { return threading::reached(group.seats[threading::index(r)].barriers, now); };
  own.place.arrive(group.at_barrier, arrived);
  own.place.meet(group.at_barrier, nullptr, arrived);
  own.history().end(order);
}
PARALLEL_INLINE void Threads::abandon(const std::string& why) { own().place.abandon(why); }
PARALLEL_INLINE int Threads::outstanding() const { return own().outstanding(); }

PARALLEL_INLINE void threading::run_ranks(int ranks, const std::function<void(Threads&)>& f,
                                          std::chrono::milliseconds deadline) {
  if (ranks < 1)
    throw Failure("parallel::run_threads: there is no rank to run; ask for at least one", exit_code::configuration);
  const auto run = std::make_shared<threading::Run>(static_cast<std::size_t>(ranks), deadline);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const auto world = std::make_shared<threading::Group>(run, members);
  world->aside()->outlives = true;
  const Unfinished unfinished;

  const auto body = [&](int rank) {
    Unfinished::is_rank(rank, ranks);
    threading::rank_of_thread = {run.get(), rank};
    run->begin.arrive_and_wait();    // the deadline does not run while threads are started
    std::optional<Threads> threads;  // outlives the exception, which says more than a group that is left
    try {
      threads.emplace(world, rank);
      f(*threads);
      if (threads->outstanding() != 0)
        throw Failure("parallel::run_threads: a rank ended with exchanges outstanding; wait for every start",
                      exit_code::internal);
      run->returned(rank);
      threads->record(nullptr);  // what it recorded to may have ended with it
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
      run->keep(rank, std::make_exception_ptr(
                          Failure(words + error.what() + "; ask for fewer ranks", exit_code::unavailable)));
      run->begin.count_down(ranks - rank);
      for (int r = rank; r < ranks; ++r) run->ended(r);
      break;
    }
  }
  run->wait_for_all();
  for (std::thread& thread : threads) thread.join();
  run->throw_kept();
}

}  // namespace parallel::internals
