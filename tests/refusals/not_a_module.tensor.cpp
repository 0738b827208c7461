// A member is a Tensor, which has no numbers to begin with.
// figures: member<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Tensor<float, Shape<16>> offset;
#else
  Parameter<float, Shape<16>> offset{zeros};
#endif
  Parameter<float, Shape<16>> w{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * w + offset)); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 16>>>, Mesh{data = 2}>;
