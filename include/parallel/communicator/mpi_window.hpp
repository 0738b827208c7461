// Collectives among processes of one machine, through memory that they share: no call of MPI, and the order of sums of
// every backend. What is exchanged goes through it piece by piece, so that the memory is small and stays in the caches.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <parallel/communicator/mpi_place.hpp>
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/communicator/past_caches.hpp>
#include <parallel/communicator/quicker_way.hpp>
#include <parallel/communicator/shared_memory.hpp>

namespace parallel::internals::processes {

/// Of a group. All ranks cut their collectives, in the order of their starts, into the same steps. In a step a rank
/// posts a piece into a slot of its own, and takes what it needs from the slots of the others:
///
///     kind                  posts                              takes
///     all_reduce            its terms                          the sum of all
///       of many, in pairs   its terms; its part of the sums    the sum of its part; the others' parts
///     reduce_scatter        terms of the others' blocks        the sum of its block
///     reduce                its terms, but for the root        the sum, at the root
///     all_gather            its block                          the others' blocks
///     all_to_all            a block for each other             the blocks for it
///     rotate                its block                          the block of the rank before
///     broadcast             all of it, at the root             all of it, elsewhere
///     gather                its block, but for the root        the others' blocks, at the root
///     scatter               a block for each other, at the     its block, elsewhere
///                           root
///     barrier               nothing                            nothing
///
/// Slots take turns: a rank is at most `slots` steps ahead of the slowest that takes. Nobody waits but in `wait`.
class Window {
 public:
  /// None where the ranks have no memory that all of them see: on several machines, or in containers of their own.
  /// Called by all ranks of the group.
  static std::unique_ptr<Window> of(const Place& group) {
    struct Offer {
      SharedMemory::Address address{};
      std::uint64_t sign = 0;
    } offer;
    SharedMemory memory;
    if (group.rank() == 0) {
      std::random_device random;
      offer.sign = std::uint64_t{random()} << 32 | random();
      memory = SharedMemory::made(bytes_for(group.size()), offer.sign);
      offer.address = memory.address();
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const char* const what = "the making of a group";
    need(MPI_Ibcast(&offer, static_cast<int>(sizeof offer), MPI_BYTE, 0, group.communicator, &request), what);
    group.complete(request, nullptr, what);
    if (group.rank() != 0) memory = SharedMemory::at(offer.address, offer.sign);
    const int mine = memory ? 1 : 0;
    int all = 0;
    need(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, group.communicator, &request), what);
    group.complete(request, nullptr, what);
    memory.close();
    return all == 1 ? std::unique_ptr<Window>(new Window(group.rank(), group.size(), std::move(memory))) : nullptr;
  }

  /// The number of a collective that is started: its first pieces are posted where slots are free. `e` stays where it
  /// is until it is taken.
  std::uint64_t start(const Exchange& e) {
    (*queue_)[queued_ % queue_->size()] = &e;
    const std::uint64_t number = queued_++;
    while (can_post()) post();
    return number;
  }
  /// Whether the collective is done: this rank has all it takes, and what others take lies in its slots. Throws
  /// Mismatch where it, or one before it, is another on another rank.
  bool done(std::uint64_t number) const {
    if (take_.number > number) return true;
    if (!differ_.empty()) throw Mismatch(differ_);
    return false;
  }
  /// Posts and takes what it can without waiting; whether there was anything. Where ranks differ it goes no further.
  bool advance() {
    bool moved = false;
    for (bool more = true; more; moved = moved || more) {
      more = false;
      while (can_post()) {
        post();
        more = true;
      }
      if (can_take() && agrees()) {
        take();
        more = true;
      }
    }
    return moved;
  }
  /// A collective that says that this rank has come, when all before it are taken.
  const Exchange& barrier() const { return barrier_; }

 private:
  static constexpr int slots = 4;
  static constexpr std::int64_t head_bytes = 128, small_bytes = 32;

  /// What a rank posts in a step, in front of its piece, or with all of a small message in the same line.
  struct alignas(64) Head {
    std::atomic<std::uint64_t> posted;  ///< the step, counted from 1
    std::int64_t count;
    Collective kind;
    DType dtype;
    bool maximum;
    int root;
    std::uint64_t calls;  ///< the hash of this collective and all before it
    alignas(32) std::byte small[small_bytes];
  };
  struct alignas(128) Seat {
    std::atomic<std::uint64_t> taken;  ///< steps
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Head) == 64);

  /// Where this rank is in the queue.
  struct Position {
    std::uint64_t number = 0, steps = 0;  ///< of the collective, and of all steps
    std::int64_t step = 0;                ///< of the collective's
    std::uint64_t pieces = 0;             ///< that were numbered
    std::uint64_t calls = 0;              ///< the hash of all collectives before, and from the first step on of this
  };

  static std::int64_t piece_bytes(int ranks) {
    return std::clamp<std::int64_t>((1 << 20) / ranks / 4096 * 4096, 16 << 10, 128 << 10);
  }
  static std::int64_t slot_bytes(int ranks) { return head_bytes + piece_bytes(ranks); }
  static std::size_t bytes_for(int ranks) {
    return static_cast<std::size_t>(first_slot(ranks) + ranks * slots * slot_bytes(ranks));
  }
  static std::int64_t first_slot(int ranks) { return static_cast<std::int64_t>(sizeof(Seat)) * (1 + ranks); }

  Window(int rank, int ranks, SharedMemory memory)
      : rank_(rank),
        ranks_(ranks),
        piece_(piece_bytes(ranks)),
        memory_(std::move(memory)),
        queue_(std::make_unique<std::array<const Exchange*, max_outstanding + 1>>()),
        terms_(static_cast<std::size_t>(ranks)) {}

  Seat& seat(int rank) const {  // behind the sign
    return *reinterpret_cast<Seat*>(memory_.data() + static_cast<std::int64_t>(sizeof(Seat)) * (1 + rank));
  }
  Head& head(int rank, std::uint64_t step) const {
    const std::int64_t slot = rank * slots + static_cast<std::int64_t>(step % slots);
    return *reinterpret_cast<Head*>(memory_.data() + first_slot(ranks_) + slot * slot_bytes(ranks_));
  }
  std::byte* piece(const Exchange& e, int rank, std::uint64_t step) const {
    Head& h = head(rank, step);
    const bool small = !in_blocks(e.kind) && e.count * bytes_of(e.dtype) <= small_bytes;
    return small ? h.small : reinterpret_cast<std::byte*>(&h) + head_bytes;
  }
  const Exchange& exchange(std::uint64_t number) const { return *(*queue_)[number % queue_->size()]; }

  /// Elements of a step, of each block where a step has a piece for each rank.
  struct Steps {
    std::int64_t length, each, count;  ///< of what is cut, elements of a step, steps
    bool pairs = false;                ///< sums by parts, and then the parts, step by step
  };
  bool in_blocks(Collective kind) const {
    return kind == Collective::reduce_scatter || kind == Collective::all_to_all || kind == Collective::scatter;
  }
  Steps steps_of(const Exchange& e) const {
    const std::int64_t in_slot = piece_ / bytes_of(e.dtype);
    const bool blocks = in_blocks(e.kind) || e.kind == Collective::all_gather || e.kind == Collective::rotate ||
                        e.kind == Collective::gather;
    const std::int64_t length = blocks ? block_of(e, ranks_) : e.count;
    const std::int64_t each = in_blocks(e.kind) ? std::max<std::int64_t>(1, in_slot / ranks_) : in_slot;
    const std::int64_t cuts = std::max<std::int64_t>(1, (length + each - 1) / each);
    constexpr std::int64_t small = 8 << 10;  // bytes for which each rank rather sums all
    const bool pairs = e.kind == Collective::all_reduce && ranks_ > 2 && e.count * bytes_of(e.dtype) > small;
    return {length, each, pairs ? 2 * cuts : cuts, pairs};
  }
  /// The elements of a step.
  struct Cut {
    std::int64_t first = 0, count = 0;
    bool sums = false, gathers = false;  ///< of a pair
    /// of a pair: where the part of a rank begins
    std::int64_t part(int rank, int ranks) const { return first + count * rank / ranks; }
  };
  static Cut cut_of(const Steps& steps, std::int64_t step) {
    const std::int64_t first = (steps.pairs ? step / 2 : step) * steps.each;
    return {first, std::min(steps.each, steps.length - first), steps.pairs && step % 2 == 0,
            steps.pairs && step % 2 == 1};
  }
  static bool is_barrier(const Exchange& e) { return e.kind == Collective::retype; }  // which sends nothing
  static std::uint64_t hash(std::uint64_t before, const Exchange& e) {
    std::uint64_t h = before;
    for (const std::int64_t word : {static_cast<std::int64_t>(e.kind), e.count, static_cast<std::int64_t>(e.dtype),
                                    std::int64_t{e.maximum}, std::int64_t{e.root}})
      h = (h ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u + 1;
    return h ^ (h >> 29);
  }
  static void next(Position& position, const Steps& steps, bool numbered) {
    ++position.steps;
    position.pieces += numbered;
    if (++position.step < steps.count) return;
    position.step = 0;
    ++position.number;
  }

  /// In a step, by each rank that posts.
  std::int64_t bytes_posted(const Exchange& e, const Cut& cut) const {
    if (cut.gathers) return cut.count / ranks_ * bytes_of(e.dtype);
    return cut.count * (in_blocks(e.kind) ? ranks_ - 1 : 1) * bytes_of(e.dtype);
  }
  /// Whether a step tells how pieces are written best: what all ranks post and take, and long enough for a clock.
  bool is_numbered(const Exchange& e, const Cut& cut) const {
    constexpr std::int64_t long_enough = 16 << 10;
    return !rooted(e.kind) && bytes_posted(e, cut) >= long_enough;
  }
  bool can_post() {
    if (post_.number == queued_) return false;
    if (post_.steps >= all_took_ + slots) {
      all_took_ = post_.steps;
      for (int r = 0; r < ranks_; ++r)
        if (r != rank_) all_took_ = std::min(all_took_, seat(r).taken.load(std::memory_order_acquire));
      if (post_.steps >= all_took_ + slots) return false;
    }
    const bool own_sum = post_.step % 2 == 1 && steps_of(exchange(post_.number)).pairs;
    return !own_sum || take_.steps == post_.steps;
  }
  void post() {
    const Exchange& e = exchange(post_.number);
    const Steps steps = steps_of(e);
    const Cut cut = cut_of(steps, post_.step);
    const bool numbered = is_numbered(e, cut);
    const bool past_caches = numbered ? way_.past_caches(post_.pieces) : way_.past_caches();
    const auto write = [&] { write_piece(e, steps, cut, past_caches); };
    numbered ? way_.measure(post_.pieces, bytes_posted(e, cut), write) : write();
    if (post_.step == 0) post_.calls = hash(post_.calls, e);
    Head& mine = head(rank_, post_.steps);
    mine.calls = post_.calls;
    mine.count = e.count;
    mine.kind = e.kind;
    mine.dtype = e.dtype;
    mine.maximum = e.maximum;
    mine.root = e.root;
    mine.posted.store(post_.steps + 1, std::memory_order_release);
    next(post_, steps, numbered);
  }
  void write_piece(const Exchange& e, const Steps& steps, const Cut& cut, bool past_caches) const {
    const std::int64_t width = bytes_of(e.dtype);
    std::byte* const to = piece(e, rank_, post_.steps);
    const auto copy = [&](std::int64_t place, const void* from, std::int64_t first, std::int64_t count) {
      if (count <= 0) return;
      const std::byte* const source = static_cast<const std::byte*>(from) + first * width;
      constexpr std::int64_t large = 2048;  // bytes; less is rather fetched from the caches
      if (past_caches && count * width >= large && place * width % 64 == 0)
        copy_past_caches(to + place * width, source, bytes(count * width));
      else
        std::memcpy(to + place * width, source, bytes(count * width));
    };
    if (cut.gathers) {
      const std::int64_t first = cut.part(rank_, ranks_);
      copy(0, e.out, first, cut.part(rank_ + 1, ranks_) - first);
    } else if (!gives(e)) {
    } else if (in_blocks(e.kind)) {
      for (int r = 0; r < ranks_; ++r)
        if (r != rank_) copy(r * steps.each, e.in, r * steps.length + cut.first, cut.count);
    } else if (cut.sums) {
      const std::int64_t before = cut.part(rank_, ranks_) - cut.first, behind = cut.part(rank_ + 1, ranks_) - cut.first;
      copy(0, e.in, cut.first, before);
      copy(behind, e.in, cut.first + behind, cut.count - behind);
    } else {
      copy(0, e.in, cut.first, cut.count);
    }
  }

  /// The rank before this one, of the ring.
  int before() const { return (rank_ + ranks_ - 1) % ranks_; }
  /// Whether this rank has something for the others.
  bool gives(const Exchange& e) const {
    return from_root(e.kind) ? rank_ == e.root : !to_root(e.kind) || rank_ != e.root;
  }
  /// Whether this rank takes something of rank r's, or waits for it.
  bool needs(const Exchange& e, int r) const {
    if (r == rank_) return false;
    if (e.kind == Collective::rotate) return r == before();
    return from_root(e.kind) ? r == e.root : !to_root(e.kind) || rank_ == e.root;
  }
  bool can_take() const {
    if (take_.steps == post_.steps || !differ_.empty()) return false;
    const Exchange& e = exchange(take_.number);
    for (int r = 0; r < ranks_; ++r)
      if (needs(e, r) && head(r, take_.steps).posted.load(std::memory_order_acquire) != take_.steps + 1) return false;
    return true;
  }
  void take() {
    const Exchange& e = exchange(take_.number);
    const Steps steps = steps_of(e);
    const Cut cut = cut_of(steps, take_.step);
    const bool numbered = is_numbered(e, cut);
    const auto read = [&] { take_pieces(e, steps, cut); };
    numbered ? way_.measure(take_.pieces, bytes_posted(e, cut), read) : read();
    if (numbered) way_.finished(take_.pieces);
    next(take_, steps, numbered);
    seat(rank_).taken.store(take_.steps, std::memory_order_release);
  }
  void take_pieces(const Exchange& e, const Steps& steps, const Cut& cut) {
    if (cut.count <= 0) return;
    const std::int64_t width = bytes_of(e.dtype);
    const auto in = [&](std::int64_t first) { return static_cast<const std::byte*>(e.in) + first * width; };
    const auto out = [&](std::int64_t first) { return static_cast<std::byte*>(e.out) + first * width; };
    const auto from = [&](int r, std::int64_t place = 0) { return piece(e, r, take_.steps) + place * width; };
    const auto copy = [&](std::byte* to, const std::byte* source, std::int64_t count) {
      if (to != source && count > 0) std::memcpy(to, source, bytes(count * width));
    };
    const auto sum = [&](std::int64_t place, std::int64_t own, std::int64_t first, std::int64_t count) {
      for (int r = 0; r < ranks_; ++r) terms_[index(r)] = r == rank_ ? in(own) : from(r, place);
      void* const to = out(first);
      ordered_sum(e.dtype, e.maximum, &to, 1, terms_.data(), ranks_, count, steps.length);
    };
    const std::int64_t block = steps.length;
    switch (e.kind) {
      case Collective::all_reduce:
        if (cut.gathers) {
          for (int r = 0; r < ranks_; ++r)
            if (r != rank_) copy(out(cut.part(r, ranks_)), from(r), cut.part(r + 1, ranks_) - cut.part(r, ranks_));
        } else if (cut.sums) {
          const std::int64_t first = cut.part(rank_, ranks_);
          sum(first - cut.first, first, first, cut.part(rank_ + 1, ranks_) - first);
        } else {
          sum(0, cut.first, cut.first, cut.count);
        }
        break;
      case Collective::reduce_scatter: sum(rank_ * steps.each, rank_ * block + cut.first, cut.first, cut.count); break;
      case Collective::reduce:
        if (rank_ == e.root) sum(0, cut.first, cut.first, cut.count);
        break;
      case Collective::broadcast:
        copy(out(cut.first), rank_ == e.root ? in(cut.first) : from(e.root), cut.count);
        break;
      case Collective::rotate: copy(out(cut.first), from(before()), cut.count); break;
      case Collective::scatter:
        copy(out(cut.first), rank_ == e.root ? in(rank_ * block + cut.first) : from(e.root, rank_ * steps.each),
             cut.count);
        break;
      default: {  // gather, all_gather, all_to_all: each begins with its own block, so that not all read from one rank
        if (e.kind == Collective::gather && rank_ != e.root) break;
        const bool to_each = e.kind == Collective::all_to_all;
        for (int i = 0; i < ranks_; ++i) {
          const int r = (rank_ + i) % ranks_;
          const std::byte* const own = in((to_each ? rank_ * block : 0) + cut.first);
          copy(out(r * block + cut.first), r == rank_ ? own : from(r, to_each ? rank_ * steps.each : 0), cut.count);
        }
      }
    }
  }
  /// Whether those that this rank takes from mean the same collective, and have called the same before: what a rank
  /// that needs nothing of the others calls, they find in the next that they take.
  bool agrees() {
    if (take_.step != 0) return true;
    const Exchange& e = exchange(take_.number);
    take_.calls = hash(take_.calls, e);
    for (int r = 0; r < ranks_ && differ_.empty(); ++r) {
      if (!needs(e, r)) continue;
      const Head& h = head(r, take_.steps);
      const Exchange other{.kind = h.kind, .count = h.count, .dtype = h.dtype, .maximum = h.maximum, .root = h.root};
      const bool same = common(e) == common(other);
      if (same && h.calls == take_.calls) continue;
      differ_ = std::string("parallel::wait: the ranks of a group ") +
                (same ? "have called different collectives before this" : "call different collectives") +
                "; let all call the same in the same order: " + rank_text(rank_, ranks_) + " " +
                (is_barrier(e) ? "barrier" : text_with_line(e)) + ", " + rank_text(r, ranks_) + " " +
                (is_barrier(other) ? "barrier" : text(other));
    }
    return differ_.empty();
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

  int rank_, ranks_;
  std::int64_t piece_;  ///< bytes
  SharedMemory memory_;
  std::unique_ptr<std::array<const Exchange*, max_outstanding + 1>> queue_;
  std::vector<const void*> terms_;
  std::uint64_t queued_ = 0, all_took_ = 0;
  Position post_{}, take_{};
  QuickerWay way_{true};  ///< into the caches, or past them: where that is wrong it costs less
  std::string differ_;    ///< what is said where ranks call different collectives
  Exchange barrier_{.kind = Collective::retype};
};

}  // namespace parallel::internals::processes
