// The sequence stands before the first state.
// figures: arguments<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<4, 4>> carry;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, carry) + x); }
};
struct Model {
  Scan<6, Cell> scan;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
#ifdef WRONG
    const auto [last, each] = scan(x, h);
#else
    const auto [last, each] = scan(h, x);
#endif
    return mean(last);
  }
};
using Step = Evaluation<Model, Tensor<float, Shape<8 / data, 4>>, Tensor<float, Shape<6, 8 / data, 4>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
