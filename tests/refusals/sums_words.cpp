// Sums are taken in float or in half of one.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = SumsIn<Step, Reduced<double>>;
#else
using Program = SumsIn<Step, Reduced<bfloat16>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
