// An array has no names for its elements.
// figures: member<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
struct Model {
  Parameter<float, Shape<6, 6>> w[2];
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, w[0]), w[1]))); }
};
#else
struct Model {
  Parameter<float, Shape<6, 6>> first, second;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, first), second))); }
};
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
