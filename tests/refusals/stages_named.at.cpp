// A parameter at a rank of the axis that the layers are shared out over.
// figures: axis<stage>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 6>, Stored<stage, At<0>>> head;
#else
  Parameter<float, Shape<6, 6>> head;
#endif
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(layers(x), head))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}>;
