// A row of a parameter.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(matmul(x, w) + w[0]));
#else
    return mean(square(matmul(x, w) + take<0, 0>(w)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
