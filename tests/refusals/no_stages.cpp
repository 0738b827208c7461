// There is nothing to do.
// figures: stages<4>, micro_batches<0>
#include <parallel/schedule/check.hpp>

using namespace parallel;

#ifdef WRONG
using checked = checked_schedule<schedules::gpipe, 4, 0>;
#else
using checked = checked_schedule<schedules::gpipe, 4, 1>;
#endif
