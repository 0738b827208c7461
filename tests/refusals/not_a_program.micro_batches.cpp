// Micro-batches of a model.
// figures: argument<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> base;
  Parameter<float, Shape<6, 6>> head;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, base), head))); }
};
using X = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
using Program = Training<Accumulate<2, Model>, Sgd, X>;
#else
using Program = Accumulate<2, Training<Model, Sgd, X>>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
