// The pending sum of `down` is completed.
// failure: Used<found<Phase::forward, collective<Collective::all_reduce, on<&tensor>, calls<1>, bytes<64>, member<'d', 'o', 'w', 'n'>, line<19>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.never(all_gather(), all_reduce(tensor))>);
#else
static_assert(proven<trained.never(all_gather(), all_to_all(tensor))>);
#endif
