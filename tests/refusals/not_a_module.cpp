// Configuration is no member.
// figures: member<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
struct Linear {
  Parameter<float, Shape<6, 8>> w;
  double scale = 0.5;
  constexpr auto operator()(Distributed auto x) const { return scale * matmul(x, w); }
};
#else
template <int divisor>
struct Scaled {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w) / divisor; }
};
using Linear = Scaled<2>;
#endif
struct Model {
  Linear linear;
  constexpr auto operator()(Distributed auto x) const { return mean(square(linear(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
