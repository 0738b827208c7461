// Threads that compute one call together, each some of its elements.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <parallel/device/kernel.hpp>
#include <parallel/graph/structure.hpp>
#include <parallel/operation/update.hpp>

namespace parallel::internals::cpu {

/// So many threads, the caller's among them. It allocates when it is made.
class Team {
 public:
  explicit Team(int threads) {
    for (int i = 1; i < threads; ++i) others_.emplace_back([this, i] { work(i); });
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    begin_.notify_all();
    for (std::thread& t : others_) t.join();
  }
  int size() const { return static_cast<int>(others_.size()) + 1; }

  /// Calls f(i) for i from 0 to size() - 1, each on a thread, and returns when all have.
  template <class F>
  void each(F f) {
    if (others_.empty()) return f(0);
    {
      const std::lock_guard lock(mutex_);
      of_ = &f;
      call_ = [](void* of, int i) { (*static_cast<F*>(of))(i); };
      under_way_ = static_cast<int>(others_.size());
      ++round_;
    }
    begin_.notify_all();
    f(0);
    std::unique_lock lock(mutex_);
    end_.wait(lock, [&] { return under_way_ == 0; });
  }

 private:
  void work(int i) {
    for (int seen = 0;;) {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return ends_ || round_ != seen; });
      if (ends_) return;
      seen = round_;
      lock.unlock();
      call_(of_, i);
      lock.lock();
      if (--under_way_ == 0) end_.notify_one();
    }
  }

  std::mutex mutex_{};
  std::condition_variable begin_{}, end_{};
  void* of_ = nullptr;
  void (*call_)(void*, int) = nullptr;
  int round_ = 0, under_way_ = 0;
  bool ends_ = false;
  std::vector<std::thread> others_{};
};

/// Whether any element of an operation can be computed without the others.
inline bool by_element(const Operation& operation) {
  return updates_by_element(operation) || &operation == &operation::cast;
}
/// Elements [begin, end) of such a call, whose other operands are numbers.
inline Call part_of(Call call, std::int64_t begin, std::int64_t end) {
  const std::int64_t elements = call.results[0].elements();
  const auto cut = [&](View& v) {
    if (v.elements() != elements) return;
    v.data = v.as<std::byte>() + begin * bytes_of(v.dtype);
    v.rank = 1;
    v.size[0] = v.whole[0] = end - begin;
    v.offset[0] = 0;
  };
  for (View& v : call.operands) cut(v);
  for (View& v : call.results) cut(v);
  return call;
}
/// Computes a launch by all threads of a team, where it is one call that goes element by element: the same bits as by
/// one thread.
inline void compute(Team& team, const Launch& launch) {
  constexpr std::int64_t unit = 64, least = 4096;  // parts begin at cache lines; small ones are not worth the threads
  const Call& call = launch.calls[0];
  if (team.size() == 1 || launch.kernel || !by_element(*call.operation) ||
      call.results[0].elements() < least * team.size())
    return launch.run();
  const std::int64_t elements = call.results[0].elements(), units = (elements + unit - 1) / unit,
                     share = (units + team.size() - 1) / team.size() * unit;
  team.each([&](int i) {
    const std::int64_t begin = std::min(elements, i * share), end = std::min(elements, begin + share);
    if (begin < end) call.kernel(part_of(call, begin, end));
  });
}

}  // namespace parallel::internals::cpu
