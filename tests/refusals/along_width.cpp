// A bias of eight channels of images that are eight wide.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 3, 3, 3>> w;
  Parameter<float, Shape<8>> bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(convolution<1, 1>(x, w) + bias));
#else
    return mean(square(convolution<1, 1>(x, w) + reshape<8, 1, 1>(bias)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 3, 8, 8>>>, Mesh{data = 2}>;
