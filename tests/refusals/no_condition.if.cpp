// A traced value is a condition.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

template <bool deep>
struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = relu(matmul(x, w));
#ifdef WRONG
    if (y) return mean(square(matmul(y, w)));
#else
    if constexpr (deep) return mean(square(matmul(y, w)));
#endif
    return mean(square(y));
  }
};
constexpr auto& p = plan<Training<Model<false>, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
