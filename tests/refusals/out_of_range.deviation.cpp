// A deviation is below 0.
// figures: line<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 4>> w{xavier};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(matmul(x, w) + random<float, Shape<16 / data, 4>>(-0.1)));
#else
    return mean(square(matmul(x, w) + random<float, Shape<16 / data, 4>>(0.1)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<16 / data, 8>>>, Mesh{data = 2}>;
