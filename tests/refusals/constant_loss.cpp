// How many are right is what one wants, but no parameter's gradient.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto target) const {
    const auto logits = matmul(x, w);
#ifdef WRONG
    return mean(cast<float>(argmax<1>(logits) == target));
#else
    return mean(cross_entropy(logits, target));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<32 / data, 16>>, Tensor<int, Shape<32 / data>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
