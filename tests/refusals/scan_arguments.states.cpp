// A cell of two states, as an LSTM's, is given both before the sequence.
// figures: arguments<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<4, 4>> carry;
  constexpr auto operator()(Distributed auto state, Distributed auto x) const {
    const auto h = take<0, 0>(state), c = take<0, 1>(state);
    const auto next = sigmoid(matmul(h, carry)) * c + tanh(x);
    return concatenate<0>(reshape<1, 8, 4>(tanh(next)), reshape<1, 8, 4>(next));
  }
};
struct Model {
  Scan<6, Cell> lstm;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    const auto h = constant<float, Shape<8 / data, 4>>(0), c = constant<float, Shape<8 / data, 4>>(0);
    return mean(lstm(h, c, x).last);
#else
    return mean(lstm(constant<float, Shape<2, 8 / data, 4>>(0), x).last);
#endif
  }
};
using Step = Evaluation<Model, Tensor<float, Shape<6, 8 / data, 4>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
