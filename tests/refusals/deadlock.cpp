// Rank 0 goes by GPipe, rank 1 by 1F1B: rank 1 hands back a gradient, rank 0 hands on the third activation, and neither
// receives.
// figures: rank<0>, step<5>, other_rank<1>, other_step<5>, micro_batch<2>, chunk<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

constexpr Actions lists() {
  Actions all = actions(schedules::one_forward_one_backward, 2, 4);
#ifdef WRONG
  all.stages[0] = actions(schedules::gpipe, 2, 4).stages[0];
#endif
  return all;
}
using checked = checked_actions<lists>;
