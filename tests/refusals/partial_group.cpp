// Six micro-batches are one group of four, and a half.
// figures: stages<4>, micro_batches<6>
#include <parallel/schedule/check.hpp>

using namespace parallel;

#ifdef WRONG
using checked = checked_schedule<schedules::interleaved<2>, 4, 6>;
#else
using checked = checked_schedule<schedules::interleaved<2>, 4, 8>;
#endif
