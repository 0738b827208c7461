// A function of this name, which is given the cell.
// figures: arguments<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<4, 4>> carry;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, carry) + x); }
};
struct Model {
#ifdef WRONG
  Cell cell;
#else
  Scan<6, Cell> cell;
#endif
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const auto [last, each] = scan<6>(cell, constant<float, Shape<8 / data, 4>>(0), x);
#else
    const auto [last, each] = cell(constant<float, Shape<8 / data, 4>>(0), x);
#endif
    return mean(last);
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<6, 8 / data, 4>>>, Mesh{data = 2}>;
