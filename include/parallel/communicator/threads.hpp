// Ranks as threads of one process: nothing is copied to be sent, every rank reads and writes the others' buffers.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <parallel/communicator/buffers.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/failure.hpp>
#include <parallel/communicator/lifetime.hpp>
#include <parallel/communicator/long_phase.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

namespace threading {
struct Group;
}  // namespace threading

/// One rank's place in a group of threads. `start` publishes pointers, and what it brings itself where that is small.
/// `wait` does this rank's share of the work when all have started, and returns when all have done theirs, but of what
/// was small its own; of a message, when either rank has copied it. `start` waits where a rank has not ended the small
/// collective that was started 512 before.
///
/// A rank that ends by an exception ends the waits of all ranks of its run, in all groups. Buffers must live until
/// nobody touches them: a group that goes out of scope with exchanges outstanding sees to that, so declare buffers
/// before groups, or call `abandon`.
class Threads {
 public:
  Threads(std::shared_ptr<threading::Group> group, int rank);
  Threads(Threads&& other) noexcept;
  Threads& operator=(Threads&& other) noexcept;
  ~Threads();

  int rank() const { return rank_; }
  int size() const { return size_; }
  void record(std::vector<Record>* records);
  /// How long this run's ranks wait for each other.
  void deadline(std::chrono::milliseconds limit);
  /// What this rank is in from now on; gives back what it was in.
  LongPhase within(const LongPhase& now);
  /// What the buffers of this rank are, here and in groups that are split from now on: of the host unless said.
  void buffers(std::shared_ptr<Buffers> those);

  Threads split(int color, int key);

  /// Throws ExchangeRefused, PeerFailed, Deadline.
  Ticket start(const Exchange& e);
  /// Throws PeerFailed, Mismatch, Deadline.
  void wait(Ticket ticket);
  /// Throws PeerFailed, Mismatch, Deadline.
  void aside(const Exchange& e);
  /// Throws PeerFailed, Deadline.
  void barrier();

  /// Ends the waits of all ranks of the run. When it returns nobody touches this rank's buffers any more.
  void abandon(const std::string& why = "it abandoned its exchanges");
  int outstanding() const;
  std::weak_ptr<std::atomic<bool>> lifetime() const { return lifetime_.seen(); }

 private:
  struct Own;
  Own& own() const;
  Lifetime lifetime_{};
  int rank_, size_;
  std::unique_ptr<Own> own_;
};
static_assert(Communicator<Threads>);

namespace threading {
/// run_threads, below.
PARALLEL_INLINE void run_ranks(int ranks, const std::function<void(Threads&)>& f, std::chrono::milliseconds deadline);
template <class... Given>
void misrun() {
  static_assert(
      sizeof...(Given) > 99,
      "parallel: run_threads takes how many ranks, then what each does with its communicator, by reference; write "
      "run_threads(mesh.ranks(), [&](Threads& world) { ... })");
}
}  // namespace threading

/// Calls f(Threads&) on so many threads, each a rank, and returns when all have ended. If one throws, the waits of the
/// others end with PeerFailed, and the first exception is thrown again here. A rank that hangs cannot be ended: 0.4 s
/// after the others missed it at the deadline (or a deadline after another failed, or after another ended and nobody
/// starts exchanges any more) the program ends with exit code 75 and a sentence. A rank that calls exit(0) ends it
/// with 70.
template <class F>
void run_threads(int ranks, F&& f, std::chrono::milliseconds deadline = default_deadline) {
  if constexpr (std::is_invocable_v<F&, Threads&>)
    threading::run_ranks(
        ranks, [&](Threads& threads) { f(threads); }, deadline);
  else
    threading::misrun<F>();
}
template <class First, class... More>
requires(!std::is_convertible_v<First, int>) void run_threads(First&&, More&&...) { threading::misrun<First>(); }

}  // namespace parallel::internals

namespace parallel {
using internals::run_threads;
using internals::Threads;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/communicator/threads.ipp>
#endif
