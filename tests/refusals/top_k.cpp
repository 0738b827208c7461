// The nine largest of eight.
// figures: taken<9>, extent<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const auto [values, positions] = top_k<1, 9>(matmul(x, w));
#else
    const auto [values, positions] = top_k<1, 3>(matmul(x, w));
#endif
    return mean(values * cast<float>(positions > 0));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
