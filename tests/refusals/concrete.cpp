// An operator() names the tensor that it takes.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

using Batch = Tensor<float, Shape<4 / data, 8>>;
struct Model {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  constexpr auto operator()(const Batch& x) const { return mean(square(matmul(x, w))); }
#else
  constexpr auto operator()(const Distributed auto& x) const { return mean(square(matmul(x, w))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{data = 2}>;
