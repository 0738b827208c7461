// The checker of schedules against an execution by brute force: every order in which ranks can go on, with sends that
// wait for their receives.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/schedule/check.hpp>
#include <parallel/schedule/picture.hpp>

using namespace parallel;
using namespace parallel::internals;

namespace {

// The execution
// --------------------------------------------------------------------------------------------------------------------------

/// A value of the computation, by the virtual stage that makes it: activations 0 to n - 1, gradients, gradients of
/// weights.
using Value = std::tuple<Work, int, int>;

struct Execution {
  const Actions& all;
  const int p = all.stages.size(), n = p * all.schedule.chunks;

  bool exists(Task t) const {
    return t.micro_batch >= 0 && t.micro_batch < all.micro_batches && t.chunk >= 0 && t.chunk < all.schedule.chunks;
  }
  Value value(Task t, int rank) const { return {t.work, t.micro_batch, t.chunk * p + rank}; }

  /// Whether one rank alone, given all that it receives, computes what it should, once, from what it has at that time.
  bool sound(int rank) const {
    std::set<Value> has, made, freed, given;
    std::map<int, int> fresh;
    for (const Action& a : all.stages[rank]) {
      const Task t = a.task;
      if (a.kind == ActionKind::collective) {
        if (a.peer < 0 || a.peer >= all.groups.size() ||
            std::count(all.groups[a.peer].begin(), all.groups[a.peer].end(), rank) == 0)
          return false;
        continue;
      }
      if (!exists(t)) return false;
      const int k = t.chunk * p + rank, j = t.micro_batch;
      const Value kept{Work::forward, j, k};
      if (a.kind == ActionKind::compute) {
        if (t.work == Work::update) {
          if (!all.schedule.asynchronous || fresh[t.chunk] == 0) return false;
          fresh[t.chunk] = 0;
          continue;
        }
        if (t.work == Work::weight && !all.schedule.weights_apart) return false;
        if (!made.insert(value(t, rank)).second || freed.count(kept)) return false;
        if (t.work == Work::forward && k > 0 && !has.count({Work::forward, j, k - 1})) return false;
        if (t.work == Work::backward && (!made.count(kept) || (k + 1 < n && !has.count({Work::backward, j, k + 1}))))
          return false;
        if (t.work == Work::weight && !made.count({Work::backward, j, k})) return false;
        has.insert(value(t, rank));
        if (t.work == (all.schedule.weights_apart ? Work::weight : Work::backward)) ++fresh[t.chunk];
      } else if (a.kind == ActionKind::release) {
        if (!freed.insert(kept).second ||
            !made.count({all.schedule.weights_apart ? Work::weight : Work::backward, j, k}))
          return false;
      } else if (a.kind == ActionKind::send) {
        const int to = t.work == Work::forward ? k + 1 : t.work == Work::backward ? k - 1 : -1;
        if (to < 0 || to >= n || to % p != a.peer || a.peer == rank) return false;
        if (!made.count(value(t, rank)) || !given.insert(value(t, rank)).second ||
            (t.work == Work::forward && freed.count(kept)))
          return false;
      } else {
        if (a.peer < 0 || a.peer >= p || a.peer == rank) return false;
        const int from = t.chunk * p + a.peer, user = t.work == Work::forward    ? from + 1
                                                      : t.work == Work::backward ? from - 1
                                                                                 : -1;
        if (user < 0 || user >= n || user % p != rank || !has.insert(value(t, a.peer)).second) return false;
      }
    }
    for (int c = 0; c < all.schedule.chunks; ++c) {
      for (int j = 0; j < all.micro_batches; ++j) {
        for (const Work w : {Work::forward, Work::backward, Work::weight})
          if ((w != Work::weight || all.schedule.weights_apart) && !made.count({w, j, c * p + rank})) return false;
        if (!freed.count({Work::forward, j, c * p + rank})) return false;
      }
      if (all.schedule.asynchronous && fresh[c] > 0) return false;
    }
    return true;
  }

  /// What the ranks have called and posted, each having begun so many of its actions.
  struct Posted {
    std::map<std::pair<int, int>, std::vector<Task>> sent{}, received{};  ///< from, to
    std::map<std::pair<int, int>, std::vector<Task>> called{};            ///< group, rank
    /// by rank: the kind, peer and count of what it waits for
    std::vector<std::vector<std::tuple<ActionKind, int, std::size_t>>> open{};
  };
  Posted posted(const std::vector<int>& begun) const {
    Posted result;
    for (int rank = 0; rank < p; ++rank) {
      result.open.emplace_back();
      for (int i = 0; i < begun[static_cast<std::size_t>(rank)]; ++i) {
        const Action& a = all.stages[rank][i];
        auto& open = result.open.back();
        if (a.kind == ActionKind::compute || a.kind == ActionKind::collective) open.clear();
        const auto post = [&](auto& list) {
          list.push_back(a.task);
          open.emplace_back(a.kind, a.peer, list.size());
        };
        if (a.kind == ActionKind::send) post(result.sent[{rank, a.peer}]);
        if (a.kind == ActionKind::receive) post(result.received[{a.peer, rank}]);
        if (a.kind == ActionKind::collective) post(result.called[{a.peer, rank}]);
      }
    }
    return result;
  }
  /// Whether all that a rank waits for has been met by the others.
  bool free(int rank, Posted& all_posted) const {
    for (const auto& [kind, peer, count] : all_posted.open[static_cast<std::size_t>(rank)]) {
      if (kind == ActionKind::send && all_posted.received[{rank, peer}].size() < count) return false;
      if (kind == ActionKind::receive && all_posted.sent[{peer, rank}].size() < count) return false;
      if (kind == ActionKind::collective)
        for (const int member : all.groups[peer])
          if (all_posted.called[{peer, member}].size() < count) return false;
    }
    return true;
  }
  /// Whether what has met is the same on both sides.
  bool agree(Posted& all_posted) const {
    for (auto& [ends, sent] : all_posted.sent) {
      const auto& received = all_posted.received[ends];
      for (std::size_t i = 0; i < std::min(sent.size(), received.size()); ++i)
        if (!(sent[i] == received[i])) return false;
    }
    for (auto& [who, calls] : all_posted.called)
      for (const int member : all.groups[who.first]) {
        const auto& others = all_posted.called[{who.first, member}];
        for (std::size_t i = 0; i < std::min(calls.size(), others.size()); ++i)
          if (!(calls[i] == others[i])) return false;
      }
    return true;
  }

  /// Whether every order in which the ranks can go on ends with all of them done.
  bool always_ends() const {
    std::set<std::vector<int>> seen;
    std::vector<std::vector<int>> open{std::vector<int>(static_cast<std::size_t>(p), 0)};
    while (!open.empty()) {
      const std::vector<int> begun = open.back();
      open.pop_back();
      if (!seen.insert(begun).second) continue;
      Posted now = posted(begun);
      if (!agree(now)) return false;
      bool moved = false, done = true;
      for (int rank = 0; rank < p; ++rank) {
        const Vector<Action>& list = all.stages[rank];
        int i = begun[static_cast<std::size_t>(rank)];
        const bool goes_on = free(rank, now);
        done = done && goes_on && i == list.size();
        if (!goes_on || i == list.size()) continue;
        const auto talks = [&] {
          return i < list.size() && (list[i].kind == ActionKind::send || list[i].kind == ActionKind::receive);
        };
        const auto joins = [&] { return talks() || (i < list.size() && list[i].kind == ActionKind::release); };
        if (!joins())
          ++i;
        else
          while (joins()) ++i;  // all of a batch at once
        std::vector<int> next = begun;
        next[static_cast<std::size_t>(rank)] = i;
        open.push_back(next);
        moved = true;
      }
      if (!moved && !done) return false;
    }
    return true;
  }
  bool accepted() const {
    for (int rank = 0; rank < p; ++rank)
      if (!sound(rank)) return false;
    return always_ends();
  }
};

// Random lists
// ---------------------------------------------------------------------------------------------------------------------------

struct Random {
  std::mt19937 engine;
  int below(int n) { return n <= 1 ? 0 : static_cast<int>(engine() % static_cast<unsigned>(n)); }
  bool in(int percent) { return below(100) < percent; }
};

Task task(Random& r, const Actions& all) {
  return {static_cast<Work>(r.below(4)), r.below(all.micro_batches), r.below(all.schedule.chunks)};
}

void mutate(Random& r, Actions& all) {
  Vector<Action>& list = all.stages[r.below(all.stages.size())];
  const int at = r.below(list.size()), to = r.below(list.size());
  if (list.empty()) return;
  switch (r.below(10)) {
    case 0: list.erase(at); break;
    case 1: list.insert(at, list[to]); break;
    case 2: list[at].task = task(r, all); break;
    case 3: list[at].peer = r.below(all.stages.size() + 1) - 1; break;
    case 4: list[at] = {static_cast<ActionKind>(r.below(5)), task(r, all), r.below(all.stages.size())}; break;
    case 5: std::swap(list[at], list[to]); break;
    case 6: {  // a message loses both ends
      const Action a = list[at];
      if (a.kind != ActionKind::send || a.peer < 0) break;
      for (Vector<Action>& other : all.stages)
        for (int i = other.size() - 1; i >= 0; --i)
          if ((other[i].kind == ActionKind::send || other[i].kind == ActionKind::receive) && other[i].task == a.task)
            other.erase(i);
      break;
    }
    default: {  // moved by a few places, which may change nothing
      const Action a = list[at];
      list.erase(at);
      list.insert(std::clamp(at + r.below(7) - 3, 0, list.size()), a);
    }
  }
}
/// A send goes later or a receive elsewhere: each rank's list may stay sound, and ranks wait in a circle.
void move_message(Random& r, Actions& all) {
  Vector<Action>& list = all.stages[r.below(all.stages.size())];
  const int at = r.below(list.size());
  if (list.empty() || (list[at].kind != ActionKind::send && list[at].kind != ActionKind::receive)) return;
  const Action a = list[at];
  list.erase(at);
  list.insert(std::clamp(a.kind == ActionKind::send ? at + r.below(9) : at - r.below(9), 0, list.size()), a);
}
/// A group of some ranks with a few collectives, in one order or nearly so.
void add_collectives(Random& r, Actions& all) {
  all.groups.push_back({});
  for (int rank = 0; rank < all.stages.size(); ++rank)
    if (r.in(75)) all.groups[0].push_back(rank);
  const int calls = 1 + r.below(2);
  for (const int rank : all.groups[0]) {
    int at = all.stages[rank].size();
    for (int c = calls - 1; c >= 0; --c) {
      if (r.in(50)) at -= r.below(std::min(at, 6) + 1);
      all.stages[rank].insert(at, Action::collective(0, {Work::forward, c}));
    }
  }
}
Actions some_lists(Random& r) {
  const Schedule* choice[] = {
      &schedules::naive,          &schedules::gpipe,          &schedules::one_forward_one_backward,
      &schedules::zero_bubble_h1, &schedules::zero_bubble_h2, &schedules::pipedream,
      &schedules::interleaved<2>};
  const Schedule& schedule = *choice[r.below(7)];
  const int p = 1 + r.below(3), m = schedule.whole_groups ? p * (p < 3 ? 1 + r.below(2) : 1) : 1 + r.below(4);
  Actions all = actions(schedule, p, m);
  if (r.in(20)) add_collectives(r, all);
  if (r.in(40)) {
    for (int k = r.below(12); k > 0; --k) move_message(r, all);
  } else if (r.in(5)) {  // nothing but chance
    for (Vector<Action>& list : all.stages)
      for (Action& a : list) a = {static_cast<ActionKind>(r.below(5)), task(r, all), r.below(p)};
  } else {
    for (int k = r.below(5); k > 0; --k) mutate(r, all);
  }
  return all;
}

}  // namespace

TEST_CASE("the checker's verdict is that of the execution, 10,000 times") {
  Random r{std::mt19937(20240611)};
  std::map<std::string, int> verdicts;
  int accepted = 0;
  for (int round = 0; round < 10000; ++round) {
    const Actions all = some_lists(r);
    const ScheduleRefusal refusal = check(all);
    const bool ends = Execution{all}.accepted();
    ++verdicts[std::string(name_of(refusal.reason))];
    accepted += ends;
    REQUIRE_MESSAGE(!refusal == ends, "round " << round << ", " << all.schedule.name << "\n"
                                               << text(all) << text(refusal));
    if (!refusal) continue;
    // What a refusal names exists.
    REQUIRE(refusal.rank >= 0);
    REQUIRE(refusal.step < all.stages[refusal.rank].size());
    if (refusal.other_step >= 0) REQUIRE(refusal.other_step < all.stages[refusal.other_rank].size());
  }
  std::string counts;
  for (const auto& [name, count] : verdicts) counts += " " + name + " " + std::to_string(count);
  MESSAGE(counts);
  CHECK(verdicts["deadlock"] > 500);
  CHECK(accepted > 2000);
  CHECK(accepted < 8000);
  for (const char* reason :
       {"unknown_task", "task_twice", "task_dropped", "task_early", "input_missing", "sent_early", "never_sent",
        "messages_crossed", "collectives_crossed", "deadlock", "released_early", "never_released", "gradient_unused"})
    CHECK_MESSAGE(verdicts[reason] > 0, reason);
}

namespace {
/// The order in which each stage is to work, for the schedule below.
std::vector<std::vector<Task>> orders;
const Schedule any_order{"any_order", 1, false, false, [](int stage, int, int, int) {
                           Tasks tasks;
                           for (const Task& t : orders[static_cast<std::size_t>(stage)]) tasks.push_back(t);
                           return tasks;
                         }};
}  // namespace

TEST_CASE("orders of tasks that can be worked off become lists without a circle, the others lists with one") {
  Random r{std::mt19937(7)};
  int possible = 0;
  for (int round = 0; round < 3000; ++round) {
    const int p = 2 + r.below(3), m = 1 + r.below(4), chunks = 1 + r.below(2);
    orders.assign(static_cast<std::size_t>(p), {});
    for (auto& order : orders) {
      for (int c = 0; c < chunks; ++c)
        for (int j = 0; j < m; ++j) {
          order.push_back({Work::forward, j, c});
          order.push_back({Work::backward, j, c});
        }
      // Roughly forward through the chunks and back, and a forward before its backward.
      std::map<std::tuple<int, int, int>, int> keys;
      const auto key = [&](Task t) {
        const int back = t.work == Work::backward, depth = back != 0 ? 2 * chunks - t.chunk : t.chunk;
        const auto [at, fresh] =
            keys.try_emplace({back, t.micro_batch, t.chunk}, 3 * (depth + t.micro_batch) + r.below(5));
        return at->second + (back != 0 ? 8 : 0);
      };
      std::stable_sort(order.begin(), order.end(), [&](Task a, Task b) { return key(a) < key(b); });
    }
    Schedule schedule = any_order;
    schedule.chunks = chunks;
    const Timing timing = timed(schedule, p, m);
    const ScheduleRefusal refusal = check(schedule, p, m);
    const bool works = timing.cost < Span::never;
    possible += works;
    if (works)
      REQUIRE_MESSAGE(!refusal, text(actions(schedule, p, m)) << text(refusal));
    else
      REQUIRE(refusal.reason == ScheduleReason::deadlock);
  }
  MESSAGE(possible << " possible of 3000");
  CHECK(possible > 600);
  CHECK(possible < 2400);
}
