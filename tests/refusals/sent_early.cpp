// Rank 0 sends an activation before it has computed it.
// figures: rank<0>, step<0>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 2);
#ifdef WRONG
  std::swap(all.stages[0][0], all.stages[0][1]);
#endif
  return all;
}
using checked = checked_actions<lists>;
