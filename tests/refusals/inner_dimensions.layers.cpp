// A mistake within a layer, with more of the model around it.
// figures: left_extent<6>, right_extent<7>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
#ifdef WRONG
  Parameter<float, Shape<7, 6>> w;
#else
  Parameter<float, Shape<6, 6>> w;
#endif
  Parameter<float, Shape<6>> b;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w) + b); }
};
struct Model {
  Layers<3, Layer> layers;
  Parameter<float, Shape<6, 8>> head;
  constexpr auto operator()(Distributed auto x) const { return mean(softmax<1>(matmul(layers(x), head))); }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
