// In a block of Layers, over rows that are split.
// figures: line<14>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<16, 16>> w{xavier};
  Parameter<float, Shape<16 / tensor>> gain{ones}, shift{zeros};
  constexpr auto operator()(Distributed auto x) const {
    const auto split = to<Shape<8 / data, 16 / tensor>>(matmul(x, w));
#ifdef WRONG
    return x + to<Shape<8 / data, 16>>(layer_norm(split, shift, gain));
#else
    return x + to<Shape<8 / data, 16>>(layer_norm(split, gain, shift));
#endif
  }
};
struct Model {
  Layers<4, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<8 / data, 16>>>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
