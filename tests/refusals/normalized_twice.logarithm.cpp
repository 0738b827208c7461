// The probabilities of classes are given as the logits of soft targets, whose loss takes the logarithm of a softmax.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 8 / tensor>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(soft_cross_entropy(softmax<1>(matmul(x, w)), y));
#else
    return mean(soft_cross_entropy(matmul(x, w), softmax<1>(y)));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<16 / data, 4>>, Tensor<float, Shape<16 / data, 8 / tensor>>>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
