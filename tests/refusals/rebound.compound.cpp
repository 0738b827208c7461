// A residual connection by +=.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    x += relu(matmul(x, w));
    return mean(square(x));
#else
    const auto y = x + relu(matmul(x, w));
    return mean(square(y));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
