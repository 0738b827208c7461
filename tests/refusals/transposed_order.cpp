// The order of two dimensions for a tensor of three.
// figures: dimensions<3>, needed<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(transpose<1, 0>(matmul(x, w))));
#else
    return mean(square(transpose<0, 2, 1>(matmul(x, w))));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 3, 6>>>, Mesh{data = 2}>;
