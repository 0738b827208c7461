// A parameter beside the layers names the axis of the stages.
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
  Parameter<float, Shape<6 / stage, 6>> head;
#else
  Parameter<float, Shape<6, 6>> head;
#endif
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(layers(x), head))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{stage = 2}>;
