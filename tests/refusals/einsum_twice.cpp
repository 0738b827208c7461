// A diagonal is not taken: each dimension has a letter.
// figures: position<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(einsum<"bkk,kj->bj">(x, w)));
#else
    return mean(square(einsum<"bik,kj->bj">(x, w)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8, 16>>>, Mesh{data = 2}>;
