// Rank 1 calls the two collectives of the group in the other order.
// figures: rank<0>, step<10>, other_rank<1>, other_step<10>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 2);
  all.groups.push_back({});
  all.groups[0].push_back(0);
  all.groups[0].push_back(1);
#ifdef WRONG
  all.stages[0].push_back(Action::collective(0, {Work::update, 0}));
  all.stages[0].push_back(Action::collective(0, {Work::update, 1}));
  all.stages[1].push_back(Action::collective(0, {Work::update, 1}));
  all.stages[1].push_back(Action::collective(0, {Work::update, 0}));
#else
  for (int rank = 0; rank < 2; ++rank)
    for (int k = 0; k < 2; ++k) all.stages[rank].push_back(Action::collective(0, {Work::update, k}));
#endif
  return all;
}
using checked = checked_actions<lists>;
