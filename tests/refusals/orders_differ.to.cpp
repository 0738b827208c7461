// What is split stays in its order.
// figures: axis<sequence>, dimension<1>, dimensions<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
    using InZigzag = Shape<4, 8 / zigzag(sequence), 6>;
#ifdef WRONG
    return mean(square(to<InZigzag>(matmul(x, w))));
#else
    return mean(square(to<InZigzag>(to<On<sequence, Invariant>>(matmul(x, w)))));
#endif
  }
};
using Batch = Tensor<float, Shape<4, 8 / sequence, 6>>;
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{sequence = 2}>;
