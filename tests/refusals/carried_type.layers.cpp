// A layer keeps the element type of what it carries.
// figures: left_bytes<4>, right_bytes<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return cast<bfloat16>(matmul(x, w));
#else
    return gelu(matmul(x, w));
#endif
  }
};
struct Model {
  Layers<3, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
