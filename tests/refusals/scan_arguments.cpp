// A number is no state, which lies somewhere.
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
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const auto [last, each] = scan(0.0, x);
#else
    const auto [last, each] = scan(constant<float, Shape<8 / data, 4>>(0), x);
#endif
    return mean(last);
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<6, 8 / data, 4>>>, Mesh{data = 2}>;
