// Four outputs meet one target each.
// figures: left_extent<4>, right_extent<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    return mean_squared_error(x, y);
#else
    return mean_squared_error(sum<1>(x), reshape<8>(y));
#endif
  }
};
constexpr auto& p =
    plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>, Tensor<float, Shape<8 / data, 1>>>, Mesh{data = 2}>;
