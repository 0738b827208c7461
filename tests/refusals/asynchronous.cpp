// PipeDream with a table that the first and the last stage use.
// figures: axis<stage>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Layer {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return gelu(matmul(x, w)); }
};
struct Model {
  Parameter<float, Shape<9, 6>> table;
  Layers<4 / stage, Layer> layers;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    return mean(cross_entropy(matmul(layers(embedding(tokens, table)), transpose(table)), targets));
  }
};
using Tokens = Tensor<int, Shape<2, 5>>;
using Step = Accumulate<4, Training<Model, Sgd, Tokens, Tokens>>;
#ifdef WRONG
constexpr auto& p = plan<Pipelined<schedules::pipedream, Step>, Mesh{stage = 2}>;
#else
constexpr auto& p = plan<Pipelined<schedules::one_forward_one_backward, Step>, Mesh{stage = 2}>;
#endif
