// What the model computes stands in forward, as in PyTorch.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
#ifdef WRONG
  constexpr auto forward(Distributed auto x) const { return mean(square(matmul(x, w))); }
#else
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
