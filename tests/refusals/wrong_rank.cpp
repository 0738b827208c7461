// A norm takes a vector as gain.
// figures: dimensions<2>, needed<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<1, 6>> gain;
#else
  Parameter<float, Shape<6>> gain;
#endif
  Parameter<float, Shape<6>> shift;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layer_norm(x, gain, shift))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
