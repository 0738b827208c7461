// A function that the model calls is not constexpr.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
auto activated(Distributed auto x) { return relu(x); }
#else
constexpr auto activated(Distributed auto x) { return relu(x); }
#endif
struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(activated(matmul(x, w)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
