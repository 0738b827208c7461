// Rank 1 receives the second activation first.
// figures: rank<0>, step<1>, other_rank<1>, other_step<0>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::gpipe, 2, 2);
#ifdef WRONG
  all.stages[1].erase(2);
  all.stages[1].insert(0, Action::receive({Work::forward, 1}, 0));
#endif
  return all;
}
using checked = checked_actions<lists>;
