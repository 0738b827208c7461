// A refused plan passes every assertion, so that the mistake stays the one error.
// figures: left_extent<6>, right_extent<7>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<7, 8>> w;
#else
  Parameter<float, Shape<6, 8>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
static_assert(equals<p.backward.collectives(data), 1>);
static_assert(at_most<p.sent(data), 5_MiB>);
static_assert(at_least<p.calls(), 2>);
static_assert(proven<p.forward.is(all_reduce(data))>);
static_assert(proven<p.never(all_gather(data))>);
static_assert(p.peak_memory() <= 1_MiB && p.sent() + 4 >= 200 && p.flops() > 0);
