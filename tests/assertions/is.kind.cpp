// A sum is completed, not scattered.
// failure: Otherwise<row<1>, found<Phase::forward, collective<Collective::all_reduce, on<&tensor>, calls<1>, bytes<64>, member<'d', 'o', 'w',
//   'n'>, line<19>>>, written<collective<Collective::reduce_scatter, on<&tensor>, calls<1>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.forward.is(reduce_scatter(tensor), all_reduce(data))>);
#else
static_assert(proven<trained.forward.is(all_reduce(tensor), all_reduce(data))>);
#endif
