// Layers lie in no other Layers.
// figures: layers<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Inner {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Outer {
#ifdef WRONG
  Layers<2, Inner> inner;
#else
  Inner inner;
#endif
  constexpr auto operator()(Distributed auto x) const { return inner(x); }
};
struct Model {
  Layers<3, Outer> outer;
  constexpr auto operator()(Distributed auto x) const { return mean(square(outer(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
