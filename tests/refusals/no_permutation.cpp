// Each dimension once.
// figures: dimension<0>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(transpose<0, 0>(matmul(x, w)));
#else
    return mean(transpose<1, 0>(matmul(x, w)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
