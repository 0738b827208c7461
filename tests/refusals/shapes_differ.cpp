// A bias must repeat along the rows.
// figures: left_extent<6>, right_extent<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<4>> b;
#else
  Parameter<float, Shape<6>> b;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(x + b)); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
