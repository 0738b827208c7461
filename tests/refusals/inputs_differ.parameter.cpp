// The operator() takes a number.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  constexpr auto operator()(float x) const { return x; }
#else
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
