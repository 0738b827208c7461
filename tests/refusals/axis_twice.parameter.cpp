// Two annotations of one axis.
// figures: axis<tensor>, times<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 8 / tensor>, On<tensor, Broadcast>> w;
#else
  Parameter<float, Shape<6, 8 / tensor>, On<data, Broadcast>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
