// The element type stands before the optimizer.
// figures: dimensions<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Momentum, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p =
    plan<Training<Model, StatesIn<Momentum, bfloat16>, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
#else
constexpr auto& p =
    plan<Training<Model, StatesIn<bfloat16, Momentum>, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
#endif
