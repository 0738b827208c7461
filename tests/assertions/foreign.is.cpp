// A row of an axis that the plan does not have is none that differs.
// failure: Foreign<collective<Collective::all_reduce, on<&sequence>, calls<1>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.optimizer.is(all_reduce(sequence))>);
#else
static_assert(proven<trained.optimizer.is(all_reduce(tensor))>);
#endif
