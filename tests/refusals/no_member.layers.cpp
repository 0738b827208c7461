// Layers that are shared out over stages are made within the function, and not a member.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8>> gain{ones};
  Parameter<float, Shape<8, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x) const { return x + tanh(matmul(rms_norm(x, gain), w)); }
};
struct Model {
  Parameter<float, Shape<8, 8>> in{xavier}, out{xavier};
#ifndef WRONG
  Layers<4 / stage, Block> blocks;
#endif
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const Layers<4 / stage, Block> blocks;
#endif
    return mean(square(matmul(blocks(matmul(x, in)), out)));
  }
};
using Batch = Tensor<float, Shape<4, 8>>;
using Step = Pipelined<schedules::gpipe, Accumulate<2, Training<Model, Sgd, Batch>>>;
constexpr auto& p = plan<Step, Mesh{stage = 2}>;
