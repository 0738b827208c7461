// The Shape is forgotten.
// figures: annotations<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, On<tensor, Split<1>>> w;
#else
  Parameter<float, Shape<8, 8>, On<tensor, Split<1>>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 8>>>, Mesh{tensor = 2}>;
