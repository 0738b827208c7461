// A block is repeated by a loop.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
};
#ifdef WRONG
struct Model {
  Block block;
  constexpr auto operator()(Distributed auto x) const {
    for (int i = 0; i < 3; ++i) x = block(x);
    return mean(square(x));
  }
};
#else
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
