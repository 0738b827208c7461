// An evaluation has no gradients.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Evaluation<Model, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = SumsIn<Step, Accumulated<bfloat16>>;
#else
using Program = SumsIn<Step, Activations<bfloat16>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
