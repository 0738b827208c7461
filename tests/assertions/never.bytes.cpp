// No gradient has 48 bytes.
// failure: Used<found<Phase::backward, collective<Collective::all_reduce, on<&data>, calls<1>, bytes<48>, member<'d', 'o', 'w', 'n'>, line<19>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.backward.never(all_reduce(data).of(48))>);
#else
static_assert(proven<trained.backward.never(all_reduce(data).of(64))>);
#endif
