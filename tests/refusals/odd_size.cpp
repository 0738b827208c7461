// A head has an even number of elements, which are turned in pairs.
// figures: extent<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
constexpr int size = 3;
#else
constexpr int size = 4;
#endif
struct Model {
  Parameter<float, Shape<8, 2 / tensor, size>> q;
  constexpr auto operator()(Distributed auto x) const { return mean(square(rotary(matmul(x, q)))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 16, 8>>>, Mesh{data = 2, tensor = 2}>;
