// A program computes from inputs and parameters.
// figures: operands<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const auto half = constant<float>(0.25) + constant<float>(0.25);
#else
    const auto half = constant<float>(0.5);
#endif
    return mean(matmul(x, w) * half);
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
