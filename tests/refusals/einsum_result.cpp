// What the result has, an operand has.
// figures: dimension<2>, dimensions<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(einsum<"bik,kj->bil">(x, w)));
#else
    return mean(square(einsum<"bik,kj->bij">(x, w)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8, 16>>>, Mesh{data = 2}>;
