// A parameter lies on an axis in one way.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 8>, Stored<data, Split<0>>, Stored<data, Split<1>>> w;
#else
  Parameter<float, Shape<6, 8>, Stored<data, Split<0>>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
