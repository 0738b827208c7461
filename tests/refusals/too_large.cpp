// Three thousand operations, one by one.
// figures: operations<3004>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  constexpr auto operator()(Distributed auto x) const { return gelu(x); }
};
struct Model {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  constexpr auto operator()(Distributed auto x) const {
    auto h = matmul(x, w);
    for (int i = 0; i < 3000; ++i) h = gelu(h);
    return sum(h);
  }
#else
  Layers<3000, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return sum(blocks(matmul(x, w))); }
#endif
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
static_assert(p.forward.calls(data) == 1);
