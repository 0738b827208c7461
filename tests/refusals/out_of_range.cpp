// The bound of a Huber loss is below 0.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 4>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(huber_loss(matmul(x, w), y, -1));
#else
    return mean(huber_loss(matmul(x, w), y, 1));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<16 / data, 8>>, Tensor<float, Shape<16 / data, 4>>>, Mesh{data = 2}>;
