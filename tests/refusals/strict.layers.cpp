// The next layer takes the hidden state as the first one did; a strict program asks that the block brings it there
// itself.
// figures: axis<tensor>, moved_from<Partial>, moved_to<Split<0>>, bytes<96>, line<15>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<6, 8 / tensor>> up;
  Parameter<float, Shape<8 / tensor, 6>> down;
  constexpr auto operator()(Distributed auto x) const {
    const auto whole = to<On<tensor, Broadcast>>(x);
#ifdef WRONG
    return matmul(relu(matmul(whole, up)), down);
#else
    return to<On<tensor, Split<0>>>(matmul(relu(matmul(whole, up)), down));
#endif
  }
};
struct Model {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
constexpr auto& p = plan<Strict<Training<Model, Sgd, Tensor<float, Shape<4 / tensor, 6>>>>, Mesh{tensor = 2}>;
