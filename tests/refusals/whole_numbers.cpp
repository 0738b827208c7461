// Classes are counted.
// figures: bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Target = Tensor<float, Shape<4 / data>>;
#else
using Target = Tensor<int, Shape<4 / data>>;
#endif
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    return mean(cross_entropy(matmul(x, w), target));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>, Target>, Mesh{data = 2}>;
