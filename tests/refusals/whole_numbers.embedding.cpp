// Rows of a table are counted.
// figures: bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Index = Tensor<float, Shape<4 / data>>;
#else
using Index = Tensor<int, Shape<4 / data>>;
#endif
struct Model {
  Parameter<float, Shape<32, 8>> table;
  constexpr auto operator()(Distributed auto x) const { return mean(embedding(x, table)); }
};
constexpr auto& p = plan<Training<Model, Sgd, Index>, Mesh{data = 2}>;
