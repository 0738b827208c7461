// The probabilities of classes are given as their logits.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 8 / tensor>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean(cross_entropy(softmax<1>(matmul(x, w)), y));
#else
    return mean(cross_entropy(matmul(x, w), y));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<16 / data, 4>>, Tensor<int, Shape<16 / data>>>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
