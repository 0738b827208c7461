// The check that stages cannot wait in a circle, against stages that are tried one by one until none can go on.
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/schedule/check.hpp>
#include <parallel/schedule/waits.hpp>

using namespace parallel;
using namespace parallel::internals;

namespace {

// What a schedule's tasks are here: a function without state, as a schedule has, that gives lists which the test has
// written before.
std::vector<std::vector<Task>> lists;
const Schedule written{"written", 1, false, false, [](int stage, int, int, int) {
                         Tasks tasks;
                         for (const Task t : lists[static_cast<std::size_t>(stage)]) tasks.push_back(t);
                         return tasks;
                       }};

/// Counts anew at every look: message k of a kind from s is asked for once the receiver has come to its k-th task that
/// needs one.
class Stages {
 public:
  bool all_end() {
    const int n = static_cast<int>(lists.size());
    at_.assign(lists.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < n; ++s)
        while (at(s) < static_cast<int>(list(s).size()) && can_go_on(s)) {
          ++at_[static_cast<std::size_t>(s)];
          moved = true;
        }
    }
    for (int s = 0; s < n; ++s)
      if (at(s) < static_cast<int>(list(s).size())) return false;
    return true;
  }

 private:
  static const std::vector<Task>& list(int s) { return lists[static_cast<std::size_t>(s)]; }
  int at(int s) const { return at_[static_cast<std::size_t>(s)]; }
  /// Micro-batches of a kind among the first `count` tasks of a stage.
  static std::vector<int> order(int s, Work kind, int count) {
    std::vector<int> result;
    for (int i = 0; i < count; ++i)
      if (list(s)[static_cast<std::size_t>(i)].work == kind)
        result.push_back(list(s)[static_cast<std::size_t>(i)].micro_batch);
    return result;
  }
  bool can_go_on(int s) const {
    const int n = static_cast<int>(lists.size());
    const Task t = list(s)[static_cast<std::size_t>(at(s))];
    const int step = t.work == Work::forward ? 1 : -1, from = s - step, to = s + step;
    const std::vector<int> mine = order(s, t.work, at(s));
    if (to >= 0 && to < n) {  // every message that it sent has been asked for: the receiver has come to that task
      const bool looks = at(to) < static_cast<int>(list(to).size());
      if (order(to, t.work, at(to) + (looks ? 1 : 0)).size() < mine.size()) return false;
    }
    if (from < 0 || from >= n) return true;
    const std::vector<int> sent = order(from, t.work, at(from));
    return sent.size() > mine.size() && sent[mine.size()] == t.micro_batch;
  }
  std::vector<int> at_{};
};

}  // namespace

TEST_CASE("the check agrees with trying") {
  std::mt19937 random(1);
  int accepted = 0, circles = 0;
  for (int round = 0; round < 10'000; ++round) {
    const int stages = 2 + static_cast<int>(random() % 3), micro_batches = 1 + static_cast<int>(random() % 4);
    const Schedule& base = *schedules::with_one_chunk[random() % 3];
    lists.assign(static_cast<std::size_t>(stages), {});
    for (int s = 0; s < stages; ++s)
      for (const Task t : base.tasks(s, stages, micro_batches, 1)) lists[static_cast<std::size_t>(s)].push_back(t);
    for (std::uint32_t swaps = random() % 4; swaps > 0; --swaps) {
      auto& some = lists[random() % lists.size()];
      const std::size_t i = random() % (some.size() - 1);
      if (some[i].micro_batch != some[i + 1].micro_batch) std::swap(some[i], some[i + 1]);
    }
    const ScheduleRefusal refusal = check_waits(written, stages, micro_batches);
    INFO("round " << round << ": " << text(refusal));
    CHECK(Stages().all_end() == !refusal);
    accepted += refusal ? 0 : 1;
    circles += refusal.reason == ScheduleReason::deadlock ? 1 : 0;
  }
  CHECK(accepted > 3000);
  CHECK(circles > 300);
}

TEST_CASE("no shipped schedule waits in a circle") {
  for (const Schedule* s :
       {&schedules::naive, &schedules::gpipe, &schedules::one_forward_one_backward, &schedules::interleaved<2>,
        &schedules::interleaved<3>, &schedules::zero_bubble_h1, &schedules::zero_bubble_h2, &schedules::pipedream})
    for (int stages = 1; stages <= 10; ++stages)
      for (int micro_batches = 1; micro_batches <= 3 * stages; ++micro_batches) {
        if (s->whole_groups && micro_batches % stages != 0) continue;
        INFO(s->name << " " << stages << " " << micro_batches);
        CHECK(!check_waits(*s, stages, micro_batches));
      }
}
static_assert(!check_waits(schedules::zero_bubble_h2, 8, 24));
