// The loss is pending on data alone.
// failure: Otherwise<row<2>, found<Phase::forward, collective<Collective::all_reduce, on<&data>, calls<1>, bytes<4>, member<'d', 'o', 'w', 'n'>,
//   line<19>>>, written<collective<Collective::all_reduce, on<&data, &tensor>, calls<1>, bytes<4>>>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.forward.is(all_reduce(tensor), all_reduce(data, tensor).of(4))>);
#else
static_assert(proven<trained.forward.is(all_reduce(tensor), all_reduce(data).of(4))>);
#endif
