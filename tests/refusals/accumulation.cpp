// An evaluation has no gradients to add up.
// figures: micro_batches<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Batch = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
using Program = Accumulate<2, Evaluation<Model, Batch>>;
#else
using Program = Accumulate<2, Training<Model, Sgd, Batch>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
