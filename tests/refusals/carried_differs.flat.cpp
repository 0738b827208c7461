// A layer drops a dimension of what it carries.
// figures: extent_taken<8>, extent_returned<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = gelu(matmul(x, w));
#ifdef WRONG
    return mean<2>(y);
#else
    return y;
#endif
  }
};
struct Model {
  Layers<3, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6, 8>>>, Mesh{data = 2}>;
