// An axis splits one dimension of a tensor.
// figures: axis<data>, times<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Batch = Tensor<float, Shape<4 / data, 6 / data>>;
#else
using Batch = Tensor<float, Shape<4 / data, 6>>;
#endif
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{data = 2}>;
