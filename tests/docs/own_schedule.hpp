// The schedule of docs/schedules.md, and what print_tables prints there.
#pragma once
#include <vector>

#include <parallel/schedule/check.hpp>
#include <parallel/schedule/picture.hpp>

#include "blocks.hpp"

namespace own_schedule {
using namespace parallel;

/// 1F1B that goes twice as far ahead: for slow links, with twice the memory.
constexpr Tasks far_ahead(int stage, int stages, int micro_batches, int) {
  Tasks tasks;
  int next = 0;
  for (int k = 0; k < micro_batches; ++k) {
    while (next < micro_batches && next <= k + 2 * (stages - stage - 1)) tasks.push_back({Work::forward, next++});
    tasks.push_back({Work::backward, k});
  }
  return tasks;
}
inline constexpr Schedule mine{"mine", 1, false, false, far_ahead};
using checked = checked_schedule<mine, 4, 8>;

/// Rank 0 checks in with rank 3 when both are done.
constexpr Actions with_a_meeting() {
  Actions all = actions(mine, 4, 8);
  all.groups.push_back({});
  for (const int rank : {0, 3}) {
    all.groups[0].push_back(rank);
    all.stages[rank].push_back(Action::collective(0));
  }
  return all;
}
using checked_meeting = checked_actions<with_a_meeting>;

inline std::string flights(const Schedule& s, int stages, int micro_batches) {
  std::string result;
  for (const int n : most_in_flight(actions(s, stages, micro_batches)))
    result += (result.empty() ? "" : ", ") + std::to_string(n);
  return result;
}

inline void print() {
  blocks::begin("schedules");
  std::puts(
      "| schedule | bubble over ideal | with transfers | activations that ranks 0 to 3 keep |\n|---|---|---|---|");
  std::vector<Schedule> shown;
  for (const Schedule* s : schedules::with_one_chunk) shown.push_back(*s);
  shown.push_back(schedules::interleaved<2>);
  shown.push_back(mine);
  for (const Schedule& s : shown)
    std::printf("| `%s%s` | %.3f | %.3f | %s |\n", std::string(s.name).c_str(), s.chunks > 1 ? "<2>" : "",
                timed(s, 4, 8).bubble_over_ideal(), timed(s, 4, 8, {1, 1, 1, 0, 0.5}).bubble_over_ideal(),
                flights(s, 4, 8).c_str());
  for (const Schedule* s : {&schedules::gpipe, &schedules::one_forward_one_backward, &schedules::zero_bubble_h1,
                            &schedules::zero_bubble_h2})
    blocks::print_block("schedule " + std::string(s->name), picture(timed(*s, 4, 8)));
  blocks::print_block("schedule interleaved", picture(timed(schedules::interleaved<2>, 2, 4)));
  blocks::print_block("schedule mine", picture(timed(mine, 4, 8)));
  blocks::print_block("actions", text(actions(schedules::one_forward_one_backward, 2, 2)));
  Actions broken = actions(schedules::one_forward_one_backward, 2, 4);
  broken.stages[0] = actions(schedules::gpipe, 2, 4).stages[0];
  blocks::print_block("schedule refused", text(check(broken)));
}
}  // namespace own_schedule
