// Whole numbers are compared with a fraction.
// figures: left_bytes<4>, right_bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto count) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(where(count > 1.5, x, y)));
#else
    return mean(square(where(count > 1, x, y)));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>, Tensor<int, Shape<4 / data, 8>>>, Mesh{data = 2}>;
