// The norm of all gradients was forgotten.
// failure: Otherwise<row<1>, found<Phase::optimizer, collective<Collective::all_reduce, on<&tensor>, calls<1>, bytes<8>, member<>, line<0>>>,
//   written<nothing>>
#include "program.hpp"

#ifdef WRONG
static_assert(proven<trained.is({.forward = {all_reduce(tensor), all_reduce(data)},
                                 .backward = {all_reduce(data), all_reduce(data)}})>);
#else
constexpr WrittenPlan right{.forward = {all_reduce(tensor), all_reduce(data)},
                            .backward = {all_reduce(data), all_reduce(data)},
                            .optimizer = {all_reduce(tensor)}};
static_assert(proven<trained.is(right)>);
#endif
