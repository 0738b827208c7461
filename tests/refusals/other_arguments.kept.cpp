// A dimension that is to be kept, which would be taken for dimension 1.
// figures: called::mean, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(x - mean<0, true>(x)));
#else
    return mean(square(x - reshape<1, 4>(mean<0>(x))));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
