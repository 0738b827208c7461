// A softmax of the classes is one behind a reshape, too; of groups of them it is another function.
// figures: line<16>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    const auto scores = reshape<8, 8>(softmax<2>(reshape<4, 2, 8>(matmul(x, w))));
#else
    const auto scores = reshape<8, 8>(softmax<2>(reshape<8, 4, 2>(matmul(x, w))));
#endif
    return mean_cross_entropy(scores, y);
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<8 / data, 6>>, Tensor<int, Shape<8 / data>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
