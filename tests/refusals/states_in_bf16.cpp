// States are rounded where the parameter is float.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using T = double;
#else
using T = float;
#endif
struct Model {
  Parameter<T, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, StatesIn<bfloat16, AdamW>, Tensor<T, Shape<4 / data, 6>>>, Mesh{data = 2}>;
