// A second Shape stands where annotations do.
// figures: annotations<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#ifdef WRONG
using Batch = Tensor<float, Shape<4, 8>, Shape<4 / data, 8>>;
#else
using Batch = Tensor<float, Shape<4 / data, 8>>;
#endif
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{data = 2}>;
