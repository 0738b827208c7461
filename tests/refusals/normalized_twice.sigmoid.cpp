// PyTorch's binary_cross_entropy takes probabilities, this one logits. A probability may be a target.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<bfloat16, Shape<4, 8>> w{xavier}, teacher{xavier};
  constexpr auto operator()(Distributed auto x) const {
    const auto target = cast<float>(sigmoid(matmul(x, teacher)));
#ifdef WRONG
    return mean(binary_cross_entropy(cast<float>(sigmoid(matmul(x, w))), target));
#else
    return mean(binary_cross_entropy(cast<float>(matmul(x, w)), target));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<bfloat16, Shape<16 / data, 4>>>, Mesh{data = 2}>;
