// One activation is split by rows, the other by columns.
// figures: axis<tensor>, operand<1>, first_lies<Split<0>>, second_lies<Split<1>>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8 / tensor>> columns;
  Parameter<float, Shape<6, 8>> rows;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto a = matmul(y, rows);     // f32[4/tensor, 8]
    const auto b = matmul(x, columns);  // f32[4, 8/tensor]
#ifdef WRONG
    return mean(a * b);
#else
    return mean(a * to<Shape<4 / tensor, 8>>(b));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>, Tensor<float, Shape<4 / tensor, 6>>>, Mesh{tensor = 2}>;
