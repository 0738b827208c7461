// Probabilities as targets, of a loss that takes the numbers of classes.
// figures: dimensions<2>, needed<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(cross_entropy(matmul(x, w), y));
#else
    return mean(soft_cross_entropy(matmul(x, w), y));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>, Tensor<float, Shape<4 / data, 8>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
