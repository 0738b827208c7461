// What is whole on every rank is never gathered, so there is nothing to keep.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 8>, Stored<data, Zero::states, Gathered::per_pass>> w;
#else
  Parameter<float, Shape<6, 8>, Stored<data, Zero::parameters, Gathered::per_pass>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
