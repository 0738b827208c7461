// More classes than logits.
// figures: classes<5>, extent<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(cross_entropy<5>(x, y));
#else
    return mean(cross_entropy<3>(x, y));
#endif
  }
};
constexpr auto& p =
    plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>, Tensor<int, Shape<8 / data>>>, Mesh{data = 2}>;
