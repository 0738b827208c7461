// The plan of a fourth stage of two.
// figures: axis<stage>, coordinate<3>, extent<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
#ifdef WRONG
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}.on_stage(3)>;
#else
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}.on_stage(1)>;
#endif
