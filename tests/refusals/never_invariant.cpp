// A Broadcast value stays Broadcast.
// figures: axis<tensor>, bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = to<On<tensor, Broadcast>>(matmul(x, w));
#ifdef WRONG
    return mean(to<On<tensor, Invariant>>(y));
#else
    return mean(to<On<tensor, Partial>>(y));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{tensor = 2}>;
