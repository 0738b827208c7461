// A softmax over the batch is another one than the loss takes; a logarithm of one is the same once more.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 8>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto logits = softmax<0>(matmul(x, w));
#ifdef WRONG
    return mean_cross_entropy<0, -1>(reshape<16, 8>(softmax<1>(logits)), y);
#else
    return mean_cross_entropy<0, -1>(reshape<16, 8>(log_softmax<1>(logits)), y) + mean_cross_entropy<0, -1>(logits, y);
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<16, 4 / tensor>>, Tensor<int, Shape<16>>>;
constexpr auto& p = plan<Step, Mesh{tensor = 2}>;
