// A layer keeps the shape of what it carries.
// figures: extent_taken<6>, extent_returned<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
#ifdef WRONG
  Parameter<float, Shape<6, 8>> w;
#else
  Parameter<float, Shape<6, 6>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<3, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
