// More than a whole target is spread over all classes.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 4>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(cross_entropy(matmul(x, w), y, 1.1));
#else
    return mean(cross_entropy(matmul(x, w), y, 0.1));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 4>>, Tensor<int, Shape<8 / data>>>, Mesh{data = 2}>;
