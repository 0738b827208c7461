// 8 columns on 3 ranks.
// figures: axis<tensor>, extent<8>, slices<3>, valid_below<2>, valid_above<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 3}>;
#else
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 4}>;
#endif
