// Which positions may be seen is meant of all pairs, and says so where both have all dimensions.
// figures: extent<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto position, Distributed auto x) const {
#ifdef WRONG
    return where(greater_equal(reshape<8, 1>(position), position), x, 0.0 * x);
#else
    return where(greater_equal(reshape<8, 1>(position), reshape<1, 8>(position)), x, 0.0 * x);
#endif
  }
};
using Look = Evaluation<Model, Tensor<int, Shape<8>>, Tensor<float, Shape<8, 8 / tensor>>>;
constexpr auto& p = plan<Look, Mesh{tensor = 2}>;
