// More than all elements are dropped.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 4>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(dropout(matmul(x, w), 1.5));
#else
    return mean(dropout(matmul(x, w), 0.5));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
