// Three layers of a stage are no two chunks.
// figures: axis<stage>, layers<6>, stages<2>, chunks<2>, group<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Model {
#ifdef WRONG
  Layers<6 / stage, Block> blocks;
#else
  Layers<8 / stage, Block> blocks;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Accumulate<4, Training<Model, AdamW, Tensor<float, Shape<16, 8>>>>;
constexpr auto& p = plan<Pipelined<schedules::interleaved<2>, Step>, Mesh{stage = 2}>;
