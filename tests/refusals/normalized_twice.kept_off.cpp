// What keeps probabilities from 0, or makes them another multiple, leaves them probabilities. A loss may be taken of
// logits that a sigmoid bounds.
// figures: line<14>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y, Distributed auto z) const {
    const auto scores = matmul(x, w);
#ifdef WRONG
    return mean(cross_entropy(dropout(2.0 * clamp(softmax<1>(scores) + 1e-9, 1e-7, 1.0), 0.1), y)) + mean(z);
#else
    return mean(cross_entropy(dropout(2.0 * clamp(scores + 1e-9, -30.0, 30.0), 0.1), y)) +
           mean(binary_cross_entropy(10 * sigmoid(scores) - 5, z));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<16 / data, 4>>, Tensor<int, Shape<16 / data>>,
                      Tensor<float, Shape<16 / data, 8>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
