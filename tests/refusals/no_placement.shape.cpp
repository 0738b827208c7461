// The placement behind a Shape, without the axis.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(to<Shape<4, 8>, Invariant>(y)));
#else
    return mean(square(to<Shape<4, 8>>(y)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
