// An activation split by rows meets rows of a weight: no row takes either, and an all-to-all is always written.
// figures: axis<tensor>, operand<0>, it_lies<Split<0>>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6>> b;
  Parameter<float, Shape<4, 6 / tensor>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = gelu(x + b);  // f32[4/tensor, 6]
#ifdef WRONG
    return mean(concatenate<1>(y, w));
#else
    return mean(concatenate<0>(to<Shape<4, 6 / tensor>>(y), w));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / tensor, 6>>>, Mesh{tensor = 2}>;
