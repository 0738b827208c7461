// A row is written that the plan has not.
// failure: Otherwise<row<3>, found<Phase::forward, nothing>, written<collective<Collective::all_gather, on<&tensor>, calls<4>, bytes<4096>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.forward.is(all_reduce(tensor), all_reduce(data), 4 * all_gather(tensor).of(4_KiB))>);
#else
static_assert(proven<trained.forward.is(all_reduce(tensor), all_reduce(data))>);
#endif
