// A sum of all before it asks where an element stands.
// figures: axis<sequence>, dimension<1>, dimensions<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);  // f32[4, 8/zigzag(sequence), 6]
#ifdef WRONG
    return mean(cumulative_sum<1>(y));
#else
    return mean(cumulative_sum<1>(in_order(to<On<sequence, Invariant>>(y))));
#endif
  }
};
using Batch = Tensor<float, Shape<4, 8 / zigzag(sequence), 6>>;
constexpr auto& p = plan<Training<Model, Sgd, Batch>, Mesh{sequence = 2}>;
