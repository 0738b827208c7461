// In place, as PyTorch has it.
// figures: called::relu, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(relu(y, true)));
#else
    return mean(square(relu(y)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
