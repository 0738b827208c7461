// A number of steps is none or more, and each step is a copy of the parameters.
// figures: dimensions<1>
#include <parallel/model/stale.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
constexpr int steps = -1;
#else
constexpr int steps = 9;
#endif
struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Stale<steps, AdamW>, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
