// Blocks in a container.
// figures: member<1>
#include <vector>

#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  std::vector<Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks[0](x))); }
#else
  Layers<2, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
