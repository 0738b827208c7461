// What happens when a rank calls exit() while ranks still run: the job does not end with 0.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <parallel/communicator/failure.hpp>

namespace parallel::internals {

/// Lives while ranks of this process run. A call of exit() meanwhile is one sentence; exit(0) becomes 70, any other
/// code stays.
/// `_exit`, `_Exit` and `quick_exit` cannot be seen from here.
class Unfinished {
 public:
  /// `end` ends the job with a code, or is null where this process is all of it.
  explicit Unfinished(void (*end)(int) = nullptr) {
    static const int asked = on_exit(&Unfinished::exits, nullptr);
    static_cast<void>(asked);
    if (end != nullptr) end_ = end;
    ++runs_;
  }
  Unfinished(const Unfinished&) = delete;
  ~Unfinished() { --runs_; }

  /// Which rank this thread is; 0 of 0: none.
  static void is_rank(int rank, int ranks) {
    rank_ = rank;
    ranks_ = ranks;
  }

  /// How the job ends is decided: a call of exit() from now on is part of that.
  static void decided() { decided_ = true; }

 private:
  static void exits(int status, void*) {
    if (runs_ == 0 || decided_) return;
    const int code = (status & 255) == exit_code::done ? exit_code::internal : status & 255;
    char who[64] = "a thread that is no rank";
    if (ranks_ > 0) std::snprintf(who, sizeof who, "rank %d of %d", rank_, ranks_);
    std::fprintf(
        stderr,
        "parallel: %s called exit(%d) while ranks still run; return from the ranks' function, or throw; the job "
        "ends with exit code %d\n",
        who, status, code);
    flush_what_was_printed();
    if (end_ != nullptr) end_.load()(code);
    std::_Exit(code);
  }

  static inline std::atomic<int> runs_{0};
  static inline std::atomic<bool> decided_{false};
  static inline std::atomic<void (*)(int)> end_{nullptr};
  static inline thread_local int rank_ = 0, ranks_ = 0;  // no destructors: exit() runs those of its thread first
};

}  // namespace parallel::internals
