// A loop over layers.
// figures: layers<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
};
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    auto y = x;
    for (const auto& block : blocks) y = block(y);
    return mean(square(y));
#else
    return mean(square(blocks(x)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
