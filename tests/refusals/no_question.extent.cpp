// A collective on an extent.
// figures: arguments<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
#ifdef WRONG
static_assert(p.never(all_gather(data = 2)));
#else
static_assert(p.never(all_gather(data)));
#endif
