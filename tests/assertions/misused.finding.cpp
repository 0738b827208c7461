// A finding is no number.
// failure: Misused<measured<-2>>
#include "program.hpp"

#ifdef WRONG
static_assert(equals<trained.never(all_gather), 0>);
#else
static_assert(proven<trained.never(all_gather)>);
#endif
