// Gradients in float16 need a scale.
// figures: bytes<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float16, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Sgd, Tensor<float16, Shape<4 / data, 6>>>;
#ifdef WRONG
using Program = Step;
#else
using Program = LossScaled<Step>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
