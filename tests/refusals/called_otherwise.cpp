// A cell that takes no slice of the sequence.
// figures: tensors<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<4, 4>> carry;
#ifdef WRONG
  constexpr auto operator()(Distributed auto h) const { return tanh(matmul(h, carry)); }
#else
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, carry) + x); }
#endif
};
struct Model {
  Scan<6, Cell> scan;
  constexpr auto operator()(Distributed auto x) const {
    const auto [last, each] = scan(constant<float, Shape<8 / data, 4>>(0), x);
    return mean(last);
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<6, 8 / data, 4>>>, Mesh{data = 2}>;
