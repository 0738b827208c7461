// What the ranks of an axis share out by a dimension they have no more to share out of.
// figures: axis<data>, times<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<6, 8 / data>, Stored<data>> w;
#else
  Parameter<float, Shape<6, 8 / data>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4, 6>>>, Mesh{data = 2}>;
