// One number is not two.
// failure: Misused<measured<1>>
#include "program.hpp"

#ifdef WRONG
static_assert(at_most<trained.sent(data) <= 5_KiB>);
#else
static_assert(at_most<trained.sent(data), 5_KiB>);
#endif
