// The table stands before its indices.
// figures: bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<32, 8>> table;
  constexpr auto operator()(Distributed auto tokens) const {
#ifdef WRONG
    return mean(embedding(table, tokens));
#else
    return mean(embedding(tokens, table));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<int, Shape<4 / data>>>, Mesh{data = 2}>;
