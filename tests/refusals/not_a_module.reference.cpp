// A member is a reference to what another struct holds.
// figures: member<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Block {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return relu(matmul(x, w)); }
};
struct Model {
#ifdef WRONG
  const Block& block;
#else
  Block block;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(block(block(x)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
