// A mode: before a collective is waited for, the ranks of its group compare what they have called.
#pragma once
#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/lifetime.hpp>

namespace parallel::internals {

/// A communicator whose ranks compare a fingerprint of each collective: its number in the group, kind, count, element
/// type, reduction, root and label. Where they differ `wait` throws Mismatch (exit code 76) on every rank of the group,
/// with all calls and their lines; without this mode Threads compares the calls but not their labels, MPI and NCCL
/// compare nothing but what cuts a message.
///
///     run_mpi([](Mpi& mpi) { Checked world(mpi); train(world); });
///
/// Barriers are compared, too, with the phase that this object was told of. It costs an exchange of 16 bytes for each
/// of these. Of messages communicators themselves compare count and type. A rank that calls another group, or nothing,
/// is found at the deadline.
template <Communicator C>
class Checked {
 public:
  /// `communicator` must outlive it.
  explicit Checked(C& communicator) : on_(&communicator) {}

  int rank() const { return on_->rank(); }
  int size() const { return on_->size(); }
  void record(std::vector<Record>* records) { on_->record(records); }
  void deadline(std::chrono::milliseconds limit) { on_->deadline(limit); }
  LongPhase within(const LongPhase& now) { return phase_ = now, on_->within(now); }
  Checked split(int color, int key) { return Checked(std::make_unique<C>(on_->split(color, key))); }
  /// Throws Mismatch, and what the communicator throws.
  void barrier(Here here = {}) {
    const std::string in = phase_.name != nullptr ? " in the phase '" + std::string(phase_.name) + "'" : "";
    agreeing::Hash hash;
    hash.name("barrier" + in);
    compare(hash.value(), "barrier", here, [&] { return "a barrier" + in; });
    on_->barrier();
  }
  void aside(const Exchange& e) { on_->aside(e); }
  void progress() requires requires(C& c) { c.progress(); }
  { on_->progress(); }
  void connect(int distance) requires requires(C& c) { c.connect(distance); }
  { on_->connect(distance); }
  /// What is checked.
  C& communicator() { return *on_; }
  std::weak_ptr<std::atomic<bool>> lifetime() const { return lifetime_.seen(); }

  Ticket start(const Exchange& e) {
    const Ticket ticket = on_->start(e);
    if (ticket.channel < 0) calls_[ticket.number % max_outstanding] = {e, ticket.number};
    return ticket;
  }
  /// Throws Mismatch, and what the communicator throws.
  void wait(Ticket ticket) {
    if (ticket.channel < 0) compare(calls_[ticket.number % max_outstanding]);
    on_->wait(ticket);
  }

 private:
  struct Call {
    Exchange exchange{};
    std::uint64_t number = 0;
  };
  explicit Checked(std::unique_ptr<C> group) : owned_(std::move(group)), on_(owned_.get()) {
    if constexpr (requires(C & c) { c.need_aside(); }) on_->need_aside();  // at set-up, not in the first step
  }

  void compare(const Call& call) {
    const Exchange& e = call.exchange;
    agreeing::Hash hash;
    for (const std::int64_t word :
         {static_cast<std::int64_t>(call.number), static_cast<std::int64_t>(e.kind), e.count,
          static_cast<std::int64_t>(e.dtype), static_cast<std::int64_t>(e.maximum), static_cast<std::int64_t>(e.root)})
      hash.word(word);
    hash.name(e.label != nullptr ? e.label : "");
    compare(hash.value(), e.label, e.from,
            [&] { return "collective " + std::to_string(call.number + 1) + " of its group, " + text(e); });
  }
  /// `label`: of what is compared; `doing()`: in words.
  template <class Doing>
  void compare(std::uint64_t hash, const char* label, const Source& from, Doing doing) {
    if (size() == 1) return;
    char words[80];  // History copies it
    std::snprintf(words, sizeof words, "fingerprint of %s", label != nullptr ? label : "");
    if (!agreeing::alike(*on_, hash, words)) agreeing::tell(*on_, doing(), from, {}, agreeing::same_order);
  }

  std::unique_ptr<C> owned_{};
  C* on_;
  Lifetime lifetime_{};
  std::array<Call, max_outstanding> calls_{};
  LongPhase phase_{};
};

/// Called by an executor before its groups are made, where the communicator's buffers are the device's.
template <class C, class Device>
requires requires(C& c, const Device& d) { attach(c, d); }
void attach(Checked<C>& world, const Device& device) { attach(world.communicator(), device); }

}  // namespace parallel::internals

namespace parallel {
using internals::Checked;
}  // namespace parallel
