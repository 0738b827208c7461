// A schedule for a model whose layers lie on every rank.
// figures: stages<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
template <Dim layers>
struct Model {
  Layers<layers, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
template <Dim layers>
using Step =
    Pipelined<schedules::gpipe, Accumulate<2, Training<Model<layers>, Sgd, Tensor<float, Shape<4 / data, 8>>>>>;
#ifdef WRONG
constexpr auto& p = plan<Step<4>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Step<4 / stage>, Mesh{data = 2, stage = 2}>;
#endif
