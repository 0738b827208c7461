// The probabilities of classes before the logits.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 4>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto probabilities) const {
    const auto logits = matmul(x, w);
#ifdef WRONG
    return mean(soft_cross_entropy(probabilities, logits));
#else
    return mean(soft_cross_entropy(logits, probabilities));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<16 / data, 8>>, Tensor<float, Shape<16 / data, 4>>>, Mesh{data = 2}>;
