// A target that the loss forgets.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
#ifdef WRONG
  constexpr auto operator()(Distributed auto x, Distributed auto) const { return mean(square(matmul(x, w))); }
#else
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(matmul(x, w) - y)); }
#endif
};
using X = Tensor<float, Shape<4 / data, 6>>;
using Y = Tensor<float, Shape<4 / data, 8>>;
constexpr auto& p = plan<Training<Model, Sgd, X, Y>, Mesh{data = 2}>;
#ifndef WRONG
constexpr auto& in_parts = plan<Accumulate<2, Training<Model, Sgd, X, Y>>, Mesh{data = 2}>;
#endif
