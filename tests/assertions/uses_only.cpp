// The loss is reduced over data.
// failure: NotAllowed<found<Phase::forward, collective<Collective::all_reduce, on<&data>, calls<1>, bytes<4>, member<'d', 'o', 'w', 'n'>, line<19>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.forward.uses_only(all_reduce(tensor), all_gather(data))>);
#else
static_assert(proven<trained.forward.uses_only(all_reduce(tensor), all_reduce(data))>);
#endif
