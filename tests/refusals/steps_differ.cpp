// A sequence has as many steps as the Scan; the first dimension is the time.
// figures: length<4>, steps<9>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Cell {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return tanh(matmul(h, w) + x); }
};
struct Model {
  Scan<9, Cell> scan;
  constexpr auto operator()(Distributed auto x) const {
    const auto initial = constant<float, Shape<4 / data, 6>>(0);
#ifdef WRONG
    return mean(square(scan(initial, x).last));
#else
    return mean(square(scan(initial, transpose<1, 0, 2>(x)).last));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 9, 6>>>, Mesh{data = 2}>;
