// Few operations of the model, and many of the updates of its parameters.
// figures: operations<2039>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
#ifdef WRONG
template <int count>
struct Blocks {
  Block block;
  Blocks<count - 1> others;
  constexpr auto operator()(Distributed auto x) const { return others(block(x)); }
};
template <>
struct Blocks<0> {
  constexpr auto operator()(Distributed auto x) const { return x; }
};
#else
template <int count>
using Blocks = Layers<count, Block>;
#endif
struct Model {
  Blocks<50> blocks;
  constexpr auto operator()(Distributed auto x) const { return sum(blocks(x)); }
};
constexpr auto& p =
    plan<AllStored<Training<Model, Muon, Tensor<float, Shape<8 / data, 8>>>, Stored<data>>, Mesh{data = 2}>;
static_assert(p.optimizer.calls(data) > 0);
