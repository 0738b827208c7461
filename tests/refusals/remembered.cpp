// What was remembered has no gradient.
// figures: layers<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 2 / tensor, 4>> keys;
  constexpr auto operator()(Distributed auto x, Distributed auto position) const {
    return mean(square(remember<1, 16>(matmul(x, keys), position)));
  }
};
using Token = Tensor<float, Shape<4 / data, 1, 8>>;
using Position = Tensor<int, Shape<>>;
#ifdef WRONG
using Program = Training<Model, Sgd, Token, Position>;
#else
using Program = Evaluation<Model, Token, Position>;
#endif
constexpr auto& p = plan<Program, Mesh{data = 2, tensor = 2}>;
