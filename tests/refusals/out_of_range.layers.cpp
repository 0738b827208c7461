// A parameter begins smaller by the root of no layers.
// figures: line<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<8, 4>> w{scaled_normal(0.02, 0)};
#else
  Parameter<float, Shape<8, 4>> w{scaled_normal(0.02, 1)};
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<16 / data, 8>>>, Mesh{data = 2}>;
