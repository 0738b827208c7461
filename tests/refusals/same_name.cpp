// An axis beside the library's with the same name.
// figures: axis<mine>, times<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
inline constexpr Axis mine{"tensor"};
#else
inline constexpr Axis mine{"mine"};
#endif
struct Model {
  Parameter<float, Shape<8, 8 / tensor>> up;
  Parameter<float, Shape<8, 8 / mine>> down;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(matmul(x, up))) + mean(square(matmul(x, down)));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 8>>>, Mesh{tensor = 2}>;
