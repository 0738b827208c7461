// A struct with a constructor hides its members.
// figures: member<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr Model() : w(normal(0.1)) {}
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#else
struct Model {
  Parameter<float, Shape<6, 6>> w{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
