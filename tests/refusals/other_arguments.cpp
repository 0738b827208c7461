// Stride and padding as arguments.
// figures: called::convolution, dimensions<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 3, 3, 3>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(convolution(x, w, 1, 1));
#else
    return mean(convolution<1, 1>(x, w));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 3, 12, 12>>>, Mesh{data = 2}>;
