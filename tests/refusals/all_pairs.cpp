// Predictions are a column, targets a vector: all differences of two examples.
// figures: extent<16>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 1>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(square(matmul(x, w) - y));
#else
    return mean(square(reshape<16>(matmul(x, w)) - y));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<16 / data, 4>>, Tensor<float, Shape<16 / data>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
