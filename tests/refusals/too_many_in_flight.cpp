// GPipe keeps all micro-batches, 1F1B as many as there are stages.
// figures: rank<0>, step<8>, micro_batch<4>, chunk<0>, limit<4>
#include <parallel/schedule/check.hpp>

using namespace parallel;

#ifdef WRONG
using checked = checked_schedule<schedules::gpipe, 4, 8, 4>;
#else
using checked = checked_schedule<schedules::one_forward_one_backward, 4, 8, 4>;
#endif
