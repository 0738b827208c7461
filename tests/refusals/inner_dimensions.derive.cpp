// A program whose mesh is known at start-up only.
// figures: left_extent<6>, right_extent<7>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
#ifdef WRONG
  Parameter<float, Shape<7, 8>> w;
#else
  Parameter<float, Shape<6, 8>> w;
#endif
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
OwnedPlan p(int ranks) {
  return derive<Accumulate<2, Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>>>(Mesh{data = ranks});
}
