// A vector has one dimension.
// figures: dimension<1>, dimensions<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6>, On<tensor, Split<1>>> b;
#else
  Parameter<float, Shape<6>, On<tensor, Split<0>>> b;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(x + b)); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2, tensor = 2}>;
