// Which GELU, by a word.
// figures: called::gelu, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return mean(square(gelu(y, "none")));
#else
    return mean(square(gelu_erf(y)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
