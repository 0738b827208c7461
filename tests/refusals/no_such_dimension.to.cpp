// Split<2> of a matrix.
// figures: dimension<2>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(to<On<tensor, Split<2>>>(square(matmul(x, w))));
#else
    return mean(to<On<tensor, Split<1>>>(square(matmul(x, w))));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
