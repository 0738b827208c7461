// A gain, in a block of Layers, of channels that are split; one of the width says all dimensions, one of what is no
// convolution's result need not.
// figures: line<15>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8 / tensor, 8, 3>> w;
  Parameter<float, Shape<8>> gain{ones};
  constexpr auto operator()(Distributed auto x) const {
    const auto y = convolution<1, 1>(x, w);
#ifdef WRONG
    return to<Shape<4 / data, 8, 8>>(gain * y);
#else
    return to<Shape<4 / data, 8, 8>>(reshape<1, 1, 8>(gain) * y) + gain;
#endif
  }
};
struct Model {
  Layers<2, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 8, 8>>>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
