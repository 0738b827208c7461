// The model decides by a traced value.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
struct Activated {
  constexpr auto operator()(Distributed auto x) const { return x > 0 ? x : 0.1 * x; }
};
#else
struct Activated {
  constexpr auto operator()(Distributed auto x) const { return where(x > 0, x, 0.1 * x); }
};
#endif
struct Model {
  Parameter<float, Shape<8, 8>> w;
  Activated activated;
  constexpr auto operator()(Distributed auto x) const { return mean(square(activated(matmul(x, w)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
