// A static parameter: every model would share it, and none has it.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  static constexpr Parameter<float, Shape<8, 8>> shared{};
#else
  Parameter<float, Shape<8, 8>> shared;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(matmul(x, w), shared))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
