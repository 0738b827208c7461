// Nobody could fill in the terms of a sum that a program is given.
// figures: axis<tensor>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Weight = Parameter<float, Shape<6, 6>, On<tensor, Partial>>;
#else
using Weight = Parameter<float, Shape<6, 6 / tensor>>;
#endif
struct Model {
  Weight w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{tensor = 2}>;
