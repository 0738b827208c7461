// A loop over steps of time, which begins with a constant.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<16, 16>> w;
  constexpr auto operator()(Distributed auto state, Distributed auto x) const { return tanh(x + matmul(state, w)); }
};
struct Model {
  Parameter<float, Shape<8, 16>> in;
  Scan<6, Cell> cell;
  constexpr auto operator()(Distributed auto x) const {
    const auto entering = matmul(x, in);
#ifdef WRONG
    auto state = constant<float, Shape<4 / data, 16>>(0);
    state = tanh(state + take<0, 0>(entering));
    return mean(square(state + take<0, 5>(entering)));
#else
    return mean(square(cell(constant<float, Shape<4 / data, 16>>(0), entering).last));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<6, 4 / data, 8>>>, Mesh{data = 2}>;
