// A step keeps the shape of the state.
// figures: extent_taken<6>, extent_returned<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
#ifdef WRONG
  Parameter<float, Shape<6, 8>> w;
#else
  Parameter<float, Shape<6, 6>> w;
#endif
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w)) * x; }
};
struct Model {
  Scan<8, Cell> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const {
    return mean(square(scan(initial, x).last));
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>, Tensor<float, Shape<8, 4 / data, 1>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
