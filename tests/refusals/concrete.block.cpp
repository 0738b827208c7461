// A block within the model names the tensor that it takes.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

using Batch = Tensor<float, Shape<4 / data, 8>>;
struct Block {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  constexpr auto operator()(Batch x) const { return x + relu(matmul(x, w)); }
#else
  constexpr auto operator()(Distributed auto x) const { return x + relu(matmul(x, w)); }
#endif
};
struct Model {
  Block block;
  constexpr auto operator()(Distributed auto x) const { return mean(square(block(x))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{data = 2}>;
