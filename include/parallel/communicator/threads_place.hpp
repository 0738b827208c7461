// A thread's place in a group: how it waits for the other ranks, and what it says when they do not come.
#pragma once
#include <parallel/communicator/buffers.hpp>
#include <parallel/communicator/threads_group.hpp>

namespace parallel::internals::threading {

inline std::size_t index(int i) { return static_cast<std::size_t>(i); }
/// Exchanges take turns in places; the round in which a number has its turn, counted from 1.
inline std::uint32_t round(std::uint64_t number, int places) {
  return static_cast<std::uint32_t>(number / static_cast<std::uint64_t>(places)) + 1;
}
/// Whether a rank, or an exchange, has come to this round of its place.
inline bool reached(const std::atomic<std::uint32_t>& at, std::uint32_t round) {
  return static_cast<std::int32_t>(at.load() - round) >= 0;
}

struct Place {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::shared_ptr<Buffers> buffers = std::make_shared<Buffers>();

  int size() const { return group->size(); }
  Run& run() const { return *group->run; }
  int member(int r) const { return group->members[index(r)]; }

  template <class Arrived>
  bool all(Arrived arrived) const {
    for (int r = 0; r < size(); ++r)
      if (!arrived(r)) return false;
    return true;
  }
  /// Behind the word that this rank has arrived: wakes those who sleep if it is the last.
  template <class Arrived>
  void arrive(Sleepers& sleepers, Arrived arrived) const {
    if (sleepers.any() && all(arrived)) sleepers.wake();
  }
  /// Waits until all ranks have arrived; `arrived(r)` says whether rank r has. Throws PeerFailed, Deadline.
  template <class Arrived>
  void meet(Sleepers& sleepers, const Exchange* e, Arrived arrived) const {
    Clock::time_point since{};
    int returns = 0;
    const auto met = [&] { return all(arrived); };
    sleepers.wait(run().spins, met, [&] {
      if (run().failed()) give_up(e);
      if (const int now = run().returns; now != returns && !group->outlives)
        look_for_returned(e, arrived), returns = now;
      const auto time = Clock::now();
      if (since == Clock::time_point{}) since = time;
      if (run().ranks[index(member(rank))].returned) return;  // the run watches those that others wait for at its end
      if (const std::chrono::milliseconds limit = run().patience(member(rank)); time - since >= limit) {
        std::vector<int> missing;
        for (int r = 0; r < size(); ++r)
          if (!arrived(r)) missing.push_back(r);
        if (!missing.empty()) late(e, limit, missing);
      }
    });
  }

  /// Calls f, which reads and writes buffers of others, unless a rank has failed: then its buffers may be gone. Throws
  /// PeerFailed.
  template <class F>
  void touch(const Exchange& e, F f) const {
    struct Touching {
      std::atomic<bool>& now;
      ~Touching() { now = false; }
    };
    {
      const Touching touching{run().ranks[index(member(rank))].touching};
      touching.now = true;  // before the look at `failed`, as Run::fail writes `failed` before it looks here
      if (!run().failed()) return f();
    }
    give_up(&e);
  }

  std::string who(int r) const {
    const std::string words = rank_text(r, size());
    return member(r) == r ? words : words + " (rank " + std::to_string(member(r)) + " of the run)";
  }

  void abandon(const std::string& why) const { run().fail(member(rank), why, run().deadline); }
  /// Ends the run with an exception.
  template <class Error>
  [[noreturn]] void fail(const Error& error, std::chrono::milliseconds patience) const {
    run().fail(member(rank), error.what(), patience);
    throw error;
  }
  [[noreturn]] void give_up(const Exchange* e) const {
    fail(PeerFailed("parallel::wait: " + who(rank) + " gave up " + what(e) + ": " + run().reason()), run().deadline);
  }

 private:
  static std::string what(const Exchange* e) { return e != nullptr ? text(*e) : "barrier"; }
  template <class Arrived>
  void look_for_returned(const Exchange* e, Arrived arrived) const {
    for (int r = 0; r < size(); ++r)
      if (run().ranks[index(member(r))].returned && !arrived(r))
        fail(PeerFailed("parallel::wait: " + who(r) + " ended without taking part in " + what(e) +
                        "; let it take part, too"),
             run().deadline);
  }
  [[noreturn]] void late(const Exchange* e, std::chrono::milliseconds limit, const std::vector<int>& missing) const {
    const std::string words = "parallel::wait: " + who(rank) + run().where(member(rank)) + " waited " + text(limit) +
                              " in " + what(e) + " for " +
                              list_of(missing, [&](int r) { return who(r) + run().where(member(r)); });
    std::vector<int> members;
    members.reserve(missing.size());
    for (const int r : missing) members.push_back(member(r));
    run().print_histories(members);
    fail(Deadline(words + "; it hangs or calls something else, or the deadline is too short", missing),
         std::chrono::milliseconds(400));
  }
};

}  // namespace parallel::internals::threading
