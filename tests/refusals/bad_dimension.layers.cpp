// No layers.
// figures: extent<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  Layers<0, Layer> layers;
#else
  Layers<1, Layer> layers;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
