// A struct of a model has at most sixteen members.
// figures: members<16>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

using Gain = Parameter<float, Shape<6>>;
#ifdef WRONG
struct Model {
  Gain a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * a * q)); }
};
#else
struct More {
  Gain p, q;
};
struct Model {
  Gain a, b, c, d, e, f, g, h, i, j, k, l, m, n, o;
  More more;
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * a * more.q)); }
};
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
