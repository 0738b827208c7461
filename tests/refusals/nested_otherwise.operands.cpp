// Both operands split their rows by data and tensor, in another order.
// figures: operand<1>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
using Other = Tensor<float, Shape<8 / tensor / data, 6>>;
#else
using Other = Tensor<float, Shape<8 / data / tensor, 6>>;
#endif
struct Model {
  Parameter<float, Shape<6>> b;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square((x + b) * (y + b))); }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<8 / data / tensor, 6>>, Other>, Mesh{data = 2, tensor = 2}>;
