// Numbers as a beginning.
// figures: bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<2>> scales{1.0F, 2.0F};
#else
  Parameter<float, Shape<2>> scales{ones};
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * scales)); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 2>>>, Mesh{data = 2}>;
