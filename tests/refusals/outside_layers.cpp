// A block's parameter belongs to the layer that is being computed.
// figures: layers<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(matmul(blocks(x), blocks.block.w)));
#else
    return mean(square(blocks(x)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
