// A word stands behind the block that it is about.
// figures: member<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  Layers<4, Block> blocks;
  KeepOnHost kept;
#else
  Layers<4, Block, KeepOnHost> blocks;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
