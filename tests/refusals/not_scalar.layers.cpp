// A training needs one number, also from Layers.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<3, Layer> layers;
#ifdef WRONG
  constexpr auto operator()(Distributed auto x) const { return layers(x); }
#else
  constexpr auto operator()(Distributed auto x) const { return sum(layers(x)); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
