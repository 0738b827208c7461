// An input more than a program takes.
// figures: inputs<9>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x, Distributed auto... more) const {
    return mean(square(matmul((x + ... + more), w)));
  }
};
using B = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
using Program = Training<Model, Sgd, B, B, B, B, B, B, B, B, B>;
#else
using Program = Training<Model, Sgd, B, B, B, B, B, B, B, B>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2}>;
