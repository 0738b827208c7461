// A step takes the state of the one before, so ranks cannot share the time.
// figures: axis<sequence>, steps<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w) + x); }
};
struct Model {
  Scan<8, Cell> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x) const {
#ifdef WRONG
    return mean(square(scan(initial, x).last));
#else
    return mean(square(scan(initial, to<Shape<8, 4, 6>>(x)).last));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4, 6>>, Tensor<float, Shape<8 / sequence, 4, 6>>>;
constexpr auto& p = plan<Step, Mesh{sequence = 2}>;
