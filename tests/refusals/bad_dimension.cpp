// A dimension of nothing.
// figures: extent<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
constexpr int classes = 0;
#else
constexpr int classes = 3;
#endif
struct Model {
  Parameter<float, Shape<6, classes>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
