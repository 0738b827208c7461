// No batch this small hides a latency.
// failure: Below<measured<64>, limit<1048576>>
#include "program.hpp"

#ifdef WRONG
static_assert(at_least<trained.largest_message(), 1_MiB>);
#else
static_assert(at_least<trained.largest_message(), 64>);
#endif
