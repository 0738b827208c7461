// Gain and shift are missing.
// figures: called::batch_norm, dimensions<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<3>> gain{ones};
  Parameter<float, Shape<3>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(batch_norm(x));
#else
    return mean(batch_norm(x, gain, shift));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 3, 12, 12>>>, Mesh{data = 2}>;
