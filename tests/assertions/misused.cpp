// A comparison is no finding.
// failure: Misused<bool>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.calls() == 5>);
#else
static_assert(equals<trained.calls(), 5>);
#endif
