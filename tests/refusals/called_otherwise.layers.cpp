// A block of one tensor is given two.
// figures: tensors<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<4, 4>> w;
#ifdef WRONG
  constexpr auto operator()(Distributed auto h) const { return matmul(h, w); }
#else
  constexpr auto operator()(Distributed auto& h, Distributed auto x) const { return matmul(h, w) + x; }
#endif
};
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(blocks(x, x)); }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
