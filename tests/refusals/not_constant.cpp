// A block's operator() is not constexpr.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
#else
  constexpr auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
#endif
};
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
static_assert(p.forward.calls(data) == 1);
