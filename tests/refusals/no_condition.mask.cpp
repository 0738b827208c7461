// A comparison as a mask.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto mask) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(where(x != y, x, y))) + 0.0 * mean(cast<float>(mask));
#else
    return mean(square(where(mask, x, y)));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>, Tensor<int, Shape<4 / data, 8>>>, Mesh{data = 2}>;
