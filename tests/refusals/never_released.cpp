// Rank 0 keeps the first activation.
// figures: rank<0>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 2);
#ifdef WRONG
  all.stages[0].erase(6);
#endif
  return all;
}
using checked = checked_actions<lists>;
