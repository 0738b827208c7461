// Layers over stages are applied twice: a second journey through all stages.
// figures: axis<stage>, times<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<4 / stage, Layer> layers;
#ifdef WRONG
  Layers<2 / stage, Layer> more;
#else
  Layers<2, Layer> more;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(more(layers(x)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}>;
