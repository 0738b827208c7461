// A base class has no name.
// figures: member<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
};
#ifdef WRONG
struct Model : Layer {
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#else
struct Model {
  Layer layer;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, layer.w))); }
};
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
