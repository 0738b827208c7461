// The targets are forgotten.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(matmul(x, w) - y)); }
};
using Batch = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
using Step = Training<Model, Sgd, Batch>;
#else
using Step = Training<Model, Sgd, Batch, Batch>;
#endif
constexpr auto& p = plan<Step, Mesh{data = 2}>;
