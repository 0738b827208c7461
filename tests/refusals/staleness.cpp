// A schedule that updates without waiting has older weights by itself.
// figures: dimensions<1>
#include <parallel/model/stale.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
};
struct Model {
  Layers<4 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Accumulate<4, Training<Model, Stale<1, AdamW>, Tensor<float, Shape<4, 6>>>>;
#ifdef WRONG
constexpr auto& p = plan<Pipelined<schedules::pipedream, Step>, Mesh{stage = 2}>;
#else
constexpr auto& p = plan<Pipelined<schedules::one_forward_one_backward, Step>, Mesh{stage = 2}>;
#endif
