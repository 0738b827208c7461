// A mask is zero or not.
// figures: bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Mask = Tensor<float, Shape<4 / data, 1>>;
#else
using Mask = Tensor<int, Shape<4 / data, 1>>;
#endif
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto mask) const {
    return mean(where(mask, matmul(x, w), constant<float>(0)));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>, Mask>, Mesh{data = 2}>;
