// A thread that looks at the clock while this one is in a call that cannot be asked to give up.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace parallel::internals {

/// Calls late(), on a thread of its own, if it still lives after so long. `late` ends the program.
class Watch {
 public:
  Watch(std::chrono::milliseconds limit, std::function<void()> late)
      : thread_([this, limit, late = std::move(late)] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, limit, [this] { return done_; })) late();
        }) {}
  Watch(const Watch&) = delete;
  ~Watch() {
    {
      const std::lock_guard guard(mutex_);
      done_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace parallel::internals
