// Two gradients are reduced, not one.
// failure: Differs<measured<2>, expected<1>>
#include "program.hpp"

#ifdef WRONG
static_assert(equals<trained.backward.collectives(data), 1>);
#else
static_assert(equals<trained.backward.collectives(data), 2>);
#endif
