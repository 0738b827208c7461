// An evaluation has no gradients to scale.
// figures: micro_batches<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float16, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Batch = Tensor<float16, Shape<4 / data, 6>>;
#ifdef WRONG
using Program = LossScaled<Evaluation<Model, Batch>>;
#else
using Program = Evaluation<Model, Batch>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
