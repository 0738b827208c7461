// A parameter on the first and the sixth of two ranks.
// figures: axis<data>, extent<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 6>, Stored<data, At<0, 5>>> w;
#else
  Parameter<float, Shape<6, 6>, Stored<data, At<0, 1>>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 6>>>, Mesh{data = 2}>;
