// Both that a Scan gives, behind an operator.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto state, Distributed auto x) const { return tanh(matmul(state, w) + x); }
};
struct Model {
  Scan<4, Cell> scan;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
#ifdef WRONG
    const auto last = scan(constant<float, Shape<2 / data, 8>>(0), x);
#else
    const auto [last, each] = scan(constant<float, Shape<2 / data, 8>>(0), x);
#endif
    return mean(square(y - last));
  }
};
using X = Tensor<float, Shape<4, 2 / data, 8>>;
using Y = Tensor<float, Shape<2 / data, 8>>;
constexpr auto& p = plan<Training<Model, Sgd, X, Y>, Mesh{data = 2}>;
