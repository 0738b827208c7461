// Element by element two tensors would have to stand in one order.
// figures: axis<sequence>, dimension<1>, dimensions<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(matmul(x, w) - y)); }
};
using Batch = Tensor<float, Shape<4, 8 / zigzag(sequence), 6>>;
#ifdef WRONG
using Target = Tensor<float, Shape<4, 8 / cyclic(sequence), 6>>;
#else
using Target = Tensor<float, Shape<4, 8, 6>>;  // what is whole is brought to the order, without a word
#endif
constexpr auto& p = plan<Training<Model, Sgd, Batch, Target>, Mesh{sequence = 2}>;
