// A weight has channels out first, then the channels that it takes.
// figures: channels<4>, taken<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<4, 8, 3, 3>> weight;
#else
  Parameter<float, Shape<8, 4, 3, 3>> weight;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(convolution<1, 1>(x, weight))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 4, 6, 6>>>, Mesh{data = 2}>;
