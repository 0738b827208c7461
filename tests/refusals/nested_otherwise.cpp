// The outer axis of a dimension cannot move alone.
// figures: operand<0>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6>> b;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = gelu(x + b);  // f32[8/data/tensor, 6]
#ifdef WRONG
    return mean(to<On<data, Invariant>>(y));
#else
    return mean(to<On<tensor, Invariant>>(y));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data / tensor, 6>>>, Mesh{data = 2, tensor = 2}>;
