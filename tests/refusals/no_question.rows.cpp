// Rows without their phase.
// figures: arguments<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
#ifdef WRONG
static_assert(p.is(all_reduce(data), all_reduce(data)));
#else
static_assert(p.forward.is(all_reduce(data)) && p.backward.is(all_reduce(data)) && p.never(all_gather));
#endif
