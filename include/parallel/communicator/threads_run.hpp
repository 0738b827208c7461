// A run of threads: what all its groups share, when it has failed, and how long it waits for those that do not end.
#pragma once
#include <cstdio>
#include <exception>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <parallel/communicator/history.hpp>
#include <parallel/communicator/long_phase.hpp>
#include <parallel/meta/meeting.hpp>

namespace parallel::internals::threading {

using Clock = std::chrono::steady_clock;

/// What all groups of a run share.
class Run {
 public:
  struct alignas(64) Rank {
    std::atomic<bool> touching{false};  ///< it reads and writes the buffers of others
    std::atomic<bool> returned{false};  ///< its function has
    std::atomic<const char*> phase{nullptr};
    std::atomic<std::chrono::milliseconds> limit{};  ///< of the phase
    History history;
  };

  Run(std::size_t n, std::chrono::milliseconds limit)
      : deadline(limit),
        spins(n <= std::thread::hardware_concurrency()),
        ranks(n),
        begin(static_cast<std::ptrdiff_t>(n)) {}

  bool failed() const { return failed_.load(); }
  std::string who(int rank) const { return rank_text(rank, static_cast<int>(ranks.size())); }
  /// The rank, and the phase that it is in.
  std::string where(int rank) const {
    const char* phase = ranks[static_cast<std::size_t>(rank)].phase.load();
    return phase == nullptr ? "" : std::string(" (in the phase '") + phase + "')";
  }
  /// How long this rank waits for others.
  std::chrono::milliseconds patience(int rank) const {
    const Rank& own = ranks[static_cast<std::size_t>(rank)];
    return parallel::internals::patience(deadline.load(), {own.phase.load(), own.limit.load()});
  }

  /// Ends all waits of the run. When it returns no other rank touches this rank's buffers, and none will.
  void fail(int rank, const std::string& why, std::chrono::milliseconds patience) {
    if (const std::lock_guard guard(mutex_); !failed()) {
      reason_ = "rank " + std::to_string(rank) + " failed: " + why;
      failed_rank_ = rank;
      overdue_ = Clock::now() + patience;
      failed_ = true;
    }
    for (std::size_t other = 0; other < ranks.size(); ++other)
      while (static_cast<int>(other) != rank && ranks[other].touching) std::this_thread::yield();
  }
  std::string reason() {
    const std::lock_guard guard(mutex_);
    return reason_;
  }
  /// Keeps the exception with which a rank ends.
  void keep(int rank, const std::exception_ptr& error) {
    const bool echo = is_echo(error);
    {
      const std::lock_guard guard(mutex_);
      Kept& place = echo ? echo_ : first_;
      // of what each says of another the one that the others heard of, however late its thread comes here
      if (place.error == nullptr || (echo && rank == failed_rank_)) place = {error, rank};
    }
    fail(rank, ending_of(error).sentence, deadline.load());
  }
  /// Throws the exception that the run ends with, if there is one: the first that is more than the echo of another
  /// rank's.
  void throw_kept() const {
    const Kept& kept = first_.error != nullptr ? first_ : echo_;
    if (kept.error != nullptr) throw_again(kept.error, who(kept.rank));
  }

  /// This rank's function has returned, or failed.
  void returned(int rank) {
    if (!ranks[static_cast<std::size_t>(rank)].returned.exchange(true)) ++returns;
  }
  /// And nothing of it comes any more.
  void ended(int rank) {
    returned(rank);
    end.arrive(static_cast<std::uint32_t>(ranks.size()));
  }
  /// Returns when all ranks have ended. Where one does not although the run has failed, or for a deadline after another
  /// has ended and while nobody starts an exchange, the program ends with exit code 75.
  void wait_for_all() {
    std::uint64_t signs = 0;
    Clock::time_point since{};
    end.wait(static_cast<std::uint32_t>(ranks.size()), false, [&] {
      if (failed()) {
        if (Clock::now() > overdue_.load()) give_up("does not end although " + reason());
        return;
      }
      if (returns == 0) return;
      std::uint64_t now = static_cast<std::uint64_t>(returns);
      std::chrono::milliseconds longest = deadline.load();
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        now += ranks[r].history.started();
        if (!ranks[r].returned) longest = std::max(longest, patience(static_cast<int>(r)));
      }
      if (now != signs) since = Clock::now();
      signs = now;
      if (Clock::now() - since < longest) return;
      print_histories(not_returned());
      give_up("has not ended " + parallel::text(longest) +
              " after another did; it hangs behind its last exchange, or the deadline is too short");
    });
  }

  /// Prints the last exchanges of the ranks, those first that are missing, once in a run.
  void print_histories(const std::vector<int>& missing) {
    if (printed_.exchange(true)) return;
    constexpr int most = 16;
    int printed = 0;
    const auto print = [&](int r) {
      if (printed++ < most) std::fputs(ranks[static_cast<std::size_t>(r)].history.text(who(r)).c_str(), stderr);
    };
    std::vector<bool> first(ranks.size());
    for (const int r : missing) first[static_cast<std::size_t>(r)] = true;
    for (const int r : missing) print(r);
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (!first[r]) print(static_cast<int>(r));
  }

  std::atomic<std::chrono::milliseconds> deadline;
  const bool spins;  ///< every rank has a core
  std::vector<Rank> ranks;
  std::latch begin;  ///< of all ranks: before, none of them waits for others
  std::atomic<int> returns{0};
  Meeting end;

 private:
  struct Kept {
    std::exception_ptr error;
    int rank = 0;
  };
  static bool is_echo(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const PeerFailed&) {
      return true;
    } catch (...) {
      return false;
    }
  }
  std::vector<int> not_returned() const {
    std::vector<int> those;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (!ranks[r].returned) those.push_back(static_cast<int>(r));
    return those;
  }
  [[noreturn]] void give_up(const std::string& why) const {
    const std::string words = list_of(not_returned(), [&](int r) { return who(r) + where(r); }) + " " + why;
    flush_what_was_printed();
    std::fprintf(stderr, "parallel::run_threads: %s; the program ends with exit code 75\n", words.c_str());
    std::_Exit(exit_code::peer);
  }

  std::atomic<bool> failed_{false}, printed_{false};
  std::atomic<Clock::time_point> overdue_{};
  std::mutex mutex_;
  std::string reason_;
  int failed_rank_ = -1;  // whose failure that is
  Kept first_, echo_;
};

}  // namespace parallel::internals::threading
