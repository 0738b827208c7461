// Where threads meet: a counter of arrivals that they watch for a moment and then sleep on.
#pragma once
#include <atomic>
#include <chrono>
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

/// Threads meet here again and again. Arrivals are counted and never reset: n threads have met for the k-th time when
/// there are n * k.
class alignas(64) Meeting {
 public:
  /// Says that this thread has arrived, and wakes those who sleep if it is the last.
  void arrive(std::uint32_t target) {
    if (arrivals_.fetch_add(1) + 1 != target) return;
    if (sleepers_.load() != 0) futex(FUTEX_WAKE_PRIVATE, 1 << 30, nullptr);
  }
  bool met(std::uint32_t target) const {
    return static_cast<std::int32_t>(arrivals_.load(std::memory_order_acquire) - target) >= 0;
  }

  /// Returns when the target is reached. `check` is called before every nap, at least every 20 ms; it throws to give
  /// up.
  template <class Check>
  void wait(std::uint32_t target, bool spins, Check check) {
    const std::timespec nap{0, 20'000'000};
    wait(target, spins, &nap, check);
  }
  /// The same, however long it takes.
  void wait(std::uint32_t target, bool spins) {
    wait(target, spins, nullptr, [] {});
  }

 private:
  static constexpr int spin_count = 4000;  // some 0.1 ms

  template <class Check>
  void wait(std::uint32_t target, bool spins, const std::timespec* nap, Check check) {
    for (int i = spins ? spin_count : 1; i > 0; --i) {
      if (met(target)) return;
      pause();
    }
    while (true) {
      const std::uint32_t seen = arrivals_.load();
      if (met(target)) return;
      check();
      sleepers_.fetch_add(1);
      futex(FUTEX_WAIT_PRIVATE, seen, nap);  // at once if there were arrivals since
      sleepers_.fetch_sub(1);
    }
  }

  // The standard's atomic wait knows no time limit.
  void futex(int operation, std::uint32_t value, const std::timespec* limit) {
    static_assert(sizeof arrivals_ == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
    syscall(SYS_futex, &arrivals_, operation, value, limit, nullptr, 0);
  }

  std::atomic<std::uint32_t> arrivals_{0}, sleepers_{0};
};

}  // namespace parallel::internals::threading
