// Scores of experts that are given are no logits where a product weighs them, but where it is their target.
// figures: line<14>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 4>> weigh{xavier};
  Parameter<float, Shape<8, 4, 4>> score{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto experts) const {
    const auto weights = reshape<16, 4, 1>(matmul(x, weigh));
#ifdef WRONG
    return mean(soft_cross_entropy(experts, matmul(x, score))) + mean(weights);
#else
    return mean(soft_cross_entropy(matmul(x, score), experts)) - mean(sum<1>(weights * log_softmax<2>(experts)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<16, 8>>, Tensor<float, Shape<16, 4, 4>>>, Mesh{}>;
