// PyTorch's layer_norm takes the length here.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16>> gain{ones};
  Parameter<float, Shape<16>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(layer_norm(x, gain, shift, 16)));
#else
    return mean(square(layer_norm(x, gain, shift, 1e-6)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 16>>>, Mesh{data = 2}>;
