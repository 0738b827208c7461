// Moving keeps the extents.
// figures: left_extent<4>, right_extent<5>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(to<Shape<5, 8>>(matmul(x, w)));
#else
    return mean(to<Shape<4, 8>>(matmul(x, w)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
