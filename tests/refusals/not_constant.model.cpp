// The model's operator() is not constexpr, and a plan is derived at start-up.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
#ifdef WRONG
  auto
#else
  constexpr auto
#endif
  operator()(Distributed auto x) const {
    return mean(square(matmul(x, w)));
  }
};
OwnedPlan p(const Mesh& mesh) { return derive<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>>(mesh); }
