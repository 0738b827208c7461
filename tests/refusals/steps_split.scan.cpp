// Nor do stages share the steps of a Scan, as they share layers.
// figures: steps<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w) + x); }
};
struct Model {
#ifdef WRONG
  Scan<8 / stage, Cell> scan;
#else
  Scan<8, Cell> scan;
#endif
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const {
    return mean(square(scan(initial, x).last));
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>, Tensor<float, Shape<8, 4 / data, 6>>>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
