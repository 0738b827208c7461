// The batches to come are made by a thread while this one is trained on.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include <parallel/meta/other_names.hpp>

namespace parallel::internals {

/// `make(step)` for one step after the other, at most so many ahead. Its thread ends with the object, behind the batch
/// that it is making.
template <class Batch>
class Prefetch {
 public:
  /// `first`: the step to begin with, as that at which a training goes on. `make` runs on the thread: what it uses must
  /// live as long as this object, and may be read meanwhile, not written.
  Prefetch(std::function<Batch(std::int64_t)> make, std::int64_t first = 0, std::size_t ahead = 2)
      : make_(std::move(make)), ahead_(ahead > 0 ? ahead : 1), thread_([this, first] { work(first); }) {}
  template <class Make, class... More>
  requires(!std::is_convertible_v<Make, std::function<Batch(std::int64_t)>>) explicit Prefetch(Make&&, More&&...) {
    static_assert(sizeof...(More) > 99,
                  "parallel: a Prefetch is made of what makes the batch of a step, and the first step; write "
                  "Prefetch<Batch> batches([&](std::int64_t step) { return Batch{...}; }, first)");
  }
  template <int is_named = 0>
  Prefetch(const std::function<Batch(std::int64_t)>&, std::int64_t, const OtherNames&) : ahead_(1) {
    static_assert(is_named > 0,
                  "parallel: how many batches a Prefetch makes ahead stands behind the first step, without a name, and "
                  "one thread makes them; write Prefetch<Batch>(make, first, 4)");
  }
  ~Prefetch() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next step's batch, for which it waits if need be. What `make` threw is thrown here, in its turn and at every
  /// call from then on.
  Batch next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_ != nullptr; });
    if (ready_.empty()) std::rethrow_exception(error_);
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return batch;
  }
  /// As a range: refused.
  template <class None = void>
  Batch* begin() const {
    static_assert(
        sizeof(None*) == 0,
        "parallel: a Prefetch is no range, since its batches have no end; write for (int i = 0; i < steps; ++i), "
        "and in it const Batch batch = batches.next()");
    return nullptr;
  }
  template <class None = void>
  Batch* end() const {
    return nullptr;
  }

 private:
  void work(std::int64_t step) {
    try {
      for (;; ++step) {
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [this] { return stopped_ || ready_.size() < ahead_; });
          if (stopped_) return;
        }
        Batch batch = make_(step);
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(batch));
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  std::function<Batch(std::int64_t)> make_;
  std::size_t ahead_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<Batch> ready_{};
  std::exception_ptr error_{};
  bool stopped_ = false;
  std::thread thread_;  // the last: it uses what stands before
};

/// Of what `make` gives.
template <class Make, class... More>
requires(std::is_invocable_v<Make&, std::int64_t>) Prefetch(Make, More...)
->Prefetch<std::invoke_result_t<Make&, std::int64_t>>;

}  // namespace parallel::internals

namespace parallel {
using internals::Prefetch;
}  // namespace parallel
