// Positions 4 to 8 of 6.
// figures: begin<4>, end<9>, extent<6>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6>> b;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(slice<1, 4, 9>(x + b)));
#else
    return mean(square(slice<1, 4, 6>(x + b)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
