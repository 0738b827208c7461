// A dimension stands in an order for the axis that splits it first.
// figures: axis<sequence>, extent<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
#ifdef WRONG
using Batch = Tensor<float, Shape<4, 8 / tensor / zigzag(sequence), 6>>;
#else
using Batch = Tensor<float, Shape<4, 8 / zigzag(sequence) / tensor, 6>>;
#endif
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{tensor = 2, sequence = 2}>;
