// Rank 0 does not send the first activation.
// figures: rank<1>, step<0>, other_rank<0>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 2);
#ifdef WRONG
  all.stages[0].erase(1);
#endif
  return all;
}
using checked = checked_actions<lists>;
