// A ring sends what a step reduces on data.
// failure: Above<measured<100>, limit<64>>
#include "program.hpp"

#ifdef WRONG
static_assert(at_most<trained.sent(data), 64>);
#else
static_assert(at_most<trained.sent(data), 1_KiB>);
#endif
