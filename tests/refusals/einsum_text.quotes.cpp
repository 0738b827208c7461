// A text in single quotes is a number.
// figures: position<0>, operands<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<4, 3>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(einsum<'bi'>(x, w));
#else
    return mean(einsum<"bi,ij->bj">(x, w));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
