// Where threads wait for each other: they watch what others write for a moment, and then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parallel::internals::threading {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Threads that wait for what others write. Who writes does so in sequential consistency, and then wakes them; what
/// they look at they read so, too. So one of two sees the other: who writes sees a sleeper, or the sleeper what was
/// written.
class alignas(64) Sleepers {
 public:
  /// Whether there is somebody to wake, so that who writes need not look further.
  bool any() const { return sleeping_.load() != 0; }
  /// Lets all look again, if there are any.
  void wake() {
    if (!any()) return;
    calls_.fetch_add(1);
    futex(FUTEX_WAKE_PRIVATE, 1 << 30, nullptr);
  }

  /// Returns when ready() is true. `check` is called before every nap, at least every 20 ms; it throws to give up.
  template <class Ready, class Check>
  void wait(bool spins, Ready ready, Check check) {
    const std::timespec nap{0, 20'000'000};
    wait(spins, &nap, ready, check);
  }
  /// The same, however long it takes.
  template <class Ready>
  void wait(bool spins, Ready ready) {
    wait(spins, nullptr, ready, [] {});
  }

 private:
  static constexpr int spin_count = 4000;  // some 0.1 ms

  template <class Ready, class Check>
  void wait(bool spins, const std::timespec* nap, Ready ready, Check check) {
    for (int i = spins ? spin_count : 1; i > 0; --i) {
      if (ready()) return;
      pause();
    }
    while (!ready()) {
      check();
      sleeping_.fetch_add(1);
      const std::uint32_t seen = calls_.load();
      if (!ready()) futex(FUTEX_WAIT_PRIVATE, seen, nap);  // at once if there was a call since
      sleeping_.fetch_sub(1);
    }
  }

  // The standard's atomic wait knows no time limit.
  void futex(int operation, std::uint32_t value, const std::timespec* limit) {
    static_assert(sizeof calls_ == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
    syscall(SYS_futex, &calls_, operation, value, limit, nullptr, 0);
  }

  std::atomic<std::uint32_t> calls_{0}, sleeping_{0};
};

/// Threads meet here again and again. Arrivals are counted and never reset: n threads have met for the k-th time when
/// there are n * k.
class Meeting {
 public:
  /// Says that this thread has arrived, and wakes those who sleep if it is the last.
  void arrive(std::uint32_t target) {
    if (arrivals_.fetch_add(1) + 1 == target) sleepers_.wake();
  }
  /// Returns when so many have arrived. `check` is as above.
  template <class... Check>
  void wait(std::uint32_t target, bool spins, Check... check) {
    sleepers_.wait(
        spins, [&] { return static_cast<std::int32_t>(arrivals_.load() - target) >= 0; }, check...);
  }

 private:
  alignas(64) std::atomic<std::uint32_t> arrivals_{0};
  Sleepers sleepers_{};
};

}  // namespace parallel::internals::threading
