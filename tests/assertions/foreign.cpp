// An axis of which nothing lies, neither on the mesh nor in the program.
// failure: Foreign<collective<Collective::all_reduce, on<&sequence>, calls<1>>>
#include "program.hpp"

// one that the program names is asked about of any mesh, and host of any program
constexpr auto& alone = plan<Training<Perceptron, Sgd, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
static_assert(equals<alone.calls(tensor), 0> && proven<alone.never(tensor)> && alone.calls(host) == 0);

#ifdef WRONG
static_assert(proven<trained.never(all_gather(), all_reduce(sequence))>);
#else
static_assert(proven<trained.never(all_gather(), reduce_scatter(tensor))>);
#endif
