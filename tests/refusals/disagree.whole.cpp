// A split activation is added to a whole one.
// figures: axis<tensor>, operand<1>, first_lies<Invariant>, second_lies<Split<1>>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6 / tensor>> up;
  Parameter<float, Shape<6 / tensor, 6>> down;
  constexpr auto operator()(Distributed auto x) const {
    const auto split = relu(matmul(x, up));        // f32[4, 6/tensor]
    const auto whole = relu(matmul(split, down));  // f32[4, 6]
#ifdef WRONG
    return mean(whole + split);
#else
    return mean(whole + to<On<tensor, Invariant>>(split));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 6>>>, Mesh{tensor = 2}>;
