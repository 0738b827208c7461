// A stage has one layer, of which no two go together.
// figures: axis<stage>, layers<2>, stages<2>, chunks<1>, group<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Model {
#ifdef WRONG
  Layers<2 / stage, Block, Recompute<2>> blocks;
#else
  Layers<4 / stage, Block, Recompute<2>> blocks;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Accumulate<4, Training<Model, AdamW, Tensor<float, Shape<16, 8>>>>;
constexpr auto& p = plan<Step, Mesh{stage = 2}>;
