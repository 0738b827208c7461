// Each product has its own reduction.
// failure: Otherwise<row<1>, found<Phase::backward, collective<Collective::all_reduce, on<&data>, calls<1>, bytes<48>, member<'d', 'o', 'w',
//   'n'>, line<19>>>, written<collective<Collective::all_reduce, on<&data>, calls<2>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.backward.is(2 * all_reduce(data))>);
#else
static_assert(proven<trained.backward.is(all_reduce(data), all_reduce(data))>);
#endif
