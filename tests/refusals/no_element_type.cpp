// Tokens are counted in int.
// figures: bytes<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 8>> table;
  constexpr auto operator()(Distributed auto tokens) const { return mean(square(embedding(tokens, table))); }
};
#ifdef WRONG
using Tokens = Tensor<long, Shape<4 / data>>;
#else
using Tokens = Tensor<int, Shape<4 / data>>;
#endif
constexpr auto& p = plan<Training<Model, Sgd, Tokens>, Mesh{data = 2}>;
