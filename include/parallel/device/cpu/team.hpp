// Threads that compute one call together, each a part of its results: the same bits as by one thread.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <parallel/device/cpu/walk.hpp>
#include <parallel/device/kernel.hpp>
#include <parallel/graph/structure.hpp>
#include <parallel/meta/meeting.hpp>
#include <parallel/operation/update.hpp>

namespace parallel::internals::cpu {

/// So many threads, the caller's among them. It allocates when it is made.
class Team {
 public:
  /// `least`: elements that a thread has at least, as fewer are not worth waking it. Throws Failure where the system
  /// has no more threads.
  explicit Team(int threads, std::int64_t least = 4096) : least_(least) {
    *all_ += threads;
    try {
      for (int i = 1; i < threads; ++i) others_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      end();
      *all_ -= threads;
      throw Failure("a rank is to have " + std::to_string(threads) + " threads, and the system gives it " +
                        std::to_string(others_.size() + 1) + "; give it fewer",
                    exit_code::unavailable);
    }
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    end();
    *all_ -= size();
  }
  int size() const { return static_cast<int>(others_.size()) + 1; }
  /// Whether so many elements to go through, or multiply-adds, are shared out: of these two million, unless `least`
  /// says otherwise.
  bool shares_elements(std::int64_t elements) const { return size() > 1 && elements >= least_ * size(); }
  bool shares_products(double multiply_adds) const {
    return size() > 1 && multiply_adds >= 512 * static_cast<double>(least_);
  }

  /// Calls f(i) for i from 0 to size() - 1, each on a thread, and returns when all have. Throws what one of them threw.
  template <class F>
  void each(F f) {
    if (others_.empty()) return f(0);
    const std::lock_guard alone(callers_);  // executors that one thread made may be run by several
    of_ = &f;
    call_ = [](void* of, int i) { (*static_cast<F*>(of))(i); };
    thrown_ = nullptr;
    begun_.arrive(++round_);
    call(0);
    done_.wait(done_in(round_), spin());
    if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  /// Of the system that this process may run on.
  static int cores() {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
    return CPU_COUNT(&allowed);
  }

 private:
  /// Whether there is a core for every thread of this process's teams: one that watches keeps no other from its own.
  bool spin() const { return *all_ <= cores_; }
  /// How many threads this process's teams have.
  static std::atomic<int>* count() {
    static std::atomic<int> threads{0};
    return &threads;
  }
  /// How often others are done when so many rounds are.
  std::uint32_t done_in(std::uint32_t rounds) const { return rounds * static_cast<std::uint32_t>(others_.size()); }
  void end() {
    ends_ = true;
    begun_.arrive(++round_);
    for (std::thread& t : others_) t.join();
  }
  void call(int i) {
    try {
      call_(of_, i);
    } catch (...) {
      const std::lock_guard lock(throwing_);
      thrown_ = std::current_exception();
    }
  }
  void work(int i) {
    for (std::uint32_t round = 1;; ++round) {
      begun_.wait(round, spin());
      if (ends_) return;
      call(i);
      done_.arrive(done_in(round));
    }
  }

  // Found where the team is made: a library of kernels, which shares out by it, may have a count of its own.
  std::atomic<int>* const all_ = count();
  const int cores_ = cores();
  const std::int64_t least_;
  std::mutex callers_{}, throwing_{};
  threading::Meeting begun_{}, done_{};
  void* of_ = nullptr;
  void (*call_)(void*, int) = nullptr;
  std::uint32_t round_ = 0;
  std::exception_ptr thrown_{};
  bool ends_ = false;
  std::vector<std::thread> others_{};
};

/// The team of so many threads that executors of this thread share: they run one after the other. None for one thread.
inline std::shared_ptr<Team> team_of(int threads) {
  thread_local std::vector<std::weak_ptr<Team>> teams;
  if (threads == 1) return nullptr;
  std::erase_if(teams, [](const std::weak_ptr<Team>& known) { return known.expired(); });
  for (const std::weak_ptr<Team>& known : teams)
    if (std::shared_ptr<Team> team = known.lock(); team != nullptr && team->size() == threads) return team;
  std::shared_ptr<Team> team = std::make_shared<Team>(threads);
  teams.push_back(team);
  return team;
}

/// The team that a call is given, where it has so many multiply-adds that it shares them out; else nullptr.
inline Team* team_for(const Call& call, double multiply_adds) {
  Team* const team = static_cast<Team*>(call.context);
  return team != nullptr && team->shares_products(multiply_adds) ? team : nullptr;
}
/// The same of a call that goes through so many elements.
inline Team* team_for_elements(const Call& call, std::int64_t elements) {
  Team* const team = static_cast<Team*>(call.context);
  return team != nullptr && team->shares_elements(elements) ? team : nullptr;
}
/// Calls f(i) for i from 0 to n - 1, by turns on the threads of a team, or on this one where there is none.
template <class F>
void each_unit(Team* team, std::int64_t n, F f) {
  const auto from = [&](std::int64_t i, std::int64_t step) {
    for (; i < n; i += step) f(i);
  };
  team == nullptr ? from(0, 1) : team->each([&](int i) { from(i, team->size()); });
}
/// Calls f(begin, end) for parts of [0, n), of which each begins at a multiple of `unit`, one on every thread.
template <class F>
void each_part(Team* team, std::int64_t n, std::int64_t unit, F f) {
  if (team == nullptr || n <= unit) return f(std::int64_t{0}, n);
  const std::int64_t units = (n + unit - 1) / unit, share = (units + team->size() - 1) / team->size() * unit;
  team->each([&](int i) {
    const std::int64_t begin = std::min(n, i * share), end = std::min(n, begin + share);
    if (begin < end) f(begin, end);
  });
}

/// Calls f(part) for parts of a walk, by its outermost dimension, one on every thread.
template <int tensors, class F>
void each_part(Team* team, const Walk<tensors>& walk, F f) {
  if (team == nullptr) return f(walk);
  const std::int64_t unit = walk.rank() > 1 ? 1 : 16;
  each_part(team, walk.outermost(), unit, [&](std::int64_t begin, std::int64_t end) { f(walk.part(begin, end)); });
}

/// Whether a kernel may ask where an element stands: it is not one of the library's, which have its team as their
/// context, or is called by what widens halves.
inline bool asks_for_places(const Call& call, const Team& team) { return call.context != &team; }
/// Whether any element of a call's result can be computed without the others. Of a program's own kernels only updates
/// are known to be so.
inline bool by_element(const Call& call, const Team& team) {
  if (call.operation == nullptr || call.results.size() == 0) return false;
  const Operation& operation = *call.operation;
  if (updates_by_element(operation)) return true;
  if (operation.name == operation::cast.name) return true;
  bool alike = call.context == &team && call.results.size() == 1 && call.operands.size() > 0;
  for (int i = 0; i < call.operands.size(); ++i)
    alike = alike && (operation.element_by_element >> i & 1) != 0 &&
            call.operands[i].elements() == call.results[0].elements();
  return alike;
}
/// Rows [begin, end) of such a call, by the first dimension: parts that know where they stand in the whole.
inline Call with_rows(Call call, std::int64_t begin, std::int64_t end) {
  const std::int64_t elements = call.results[0].elements();
  const auto cut = [&](View& v) {
    if (v.elements() != elements) return;
    v.data = v.as<std::byte>() + begin * (elements / v.size[0]) * bytes_of(v.dtype);
    v.size[0] = end - begin;
    v.offset[0] += begin;
  };
  for (View& v : call.operands) cut(v);
  for (View& v : call.results) cut(v);
  return call;
}
/// Whether what such a call takes and gives has the same first dimension, or is a number.
inline bool of_rows(const Call& call) {
  const View& first = call.results[0];
  const auto fits = [&](const View& v) {
    return v.elements() != first.elements() || (v.rank > 0 && v.size[0] == first.size[0]);
  };
  return std::all_of(call.operands.begin(), call.operands.end(), fits) &&
         std::all_of(call.results.begin(), call.results.end(), fits);
}
/// Elements [begin, end) of such a call, whose other operands are numbers, for one thread of a team.
inline Call part_of(const Team& team, Call call, std::int64_t begin, std::int64_t end) {
  if (call.context == &team) call.context = nullptr;
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
/// Computes a launch by all threads of a team, where its calls go element by element: the same bits as by one thread.
inline void compute(Team& team, const Launch& launch) {
  constexpr std::int64_t unit = 64;  // parts begin at cache lines
  const std::int64_t elements = launch.calls[0].results[0].elements();
  bool cut = team.shares_elements(elements);
  for (const Call& call : launch.calls) cut = cut && by_element(call, team) && call.results[0].elements() == elements;
  if (!cut) return launch.run();
  if (asks_for_places(launch.calls[0], team)) {
    const Call& own = launch.calls[0];
    if (launch.calls.size() > 1 || !of_rows(own)) return launch.run();
    return each_part(&team, own.results[0].size[0], 1,
                     [&](std::int64_t begin, std::int64_t end) { own.kernel(with_rows(own, begin, end)); });
  }
  each_part(&team, elements, unit, [&](std::int64_t begin, std::int64_t end) {
    for (const Call& call : launch.calls) call.kernel(part_of(team, call, begin, end));
  });
}

}  // namespace parallel::internals::cpu
