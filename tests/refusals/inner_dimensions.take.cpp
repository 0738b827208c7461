// What is refused is taken from: that is no second error.
// figures: left_extent<8>, right_extent<16>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(take<1, 0>(matmul(x, w))));
#else
    return mean(square(take<1, 0>(matmul(x, transpose(w)))));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
