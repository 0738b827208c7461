// One product for every matrix of a batch.
// figures: left_extent<5>, right_extent<6>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<3, 6, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(y) + mean(batched_matmul(to<Shape<3, 4, 5>>(x), w));
#else
    return mean(x) + mean(batched_matmul(transpose<1, 2, 0>(y), w));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<3, 4, 5>>, Tensor<float, Shape<6, 3, 4>>>, Mesh{}>;
