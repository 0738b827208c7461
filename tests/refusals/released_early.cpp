// Rank 0 frees the first activation before its backward.
// figures: rank<0>, step<5>, micro_batch<0>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 2);
#ifdef WRONG
  std::swap(all.stages[0][5], all.stages[0][6]);
#endif
  return all;
}
using checked = checked_actions<lists>;
