// 48 elements stay 48.
// figures: before<48>, after<50>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(matmul(x, reshape<5, 10>(w))));
#else
    return mean(square(matmul(x, reshape<6, 8>(w))));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
