// An input that is stored: it is given anew for each step.
// figures: annotations<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 8>> w;
#else
  Parameter<float, Shape<6, 8>, Stored<data>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#ifdef WRONG
using Input = Tensor<float, Shape<4 / data, 6>, Stored<host>>;
#else
using Input = Tensor<float, Shape<4 / data, 6>>;
#endif
constexpr auto& p = plan<Training<Model, Sgd, Input>, Mesh{data = 2}>;
