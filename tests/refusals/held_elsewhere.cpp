// The other ranks of the axis have nothing to compute with.
// figures: axis<stage>, operand<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = to<On<stage, At<0>>>(matmul(x, w));
#ifdef WRONG
    return mean(gelu(y));
#else
    return mean(gelu(to<On<stage, Invariant>>(y)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}>;
