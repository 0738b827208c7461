// Without the gain, which is the model's.
// figures: called::layer_norm, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  Parameter<float, Shape<8>> gain{ones};
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(layer_norm(y)));
#else
    return mean(square(layer_norm(y, gain)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
