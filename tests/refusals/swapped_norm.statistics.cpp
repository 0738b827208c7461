// PyTorch's batch_norm takes the statistics first.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<3>> gain{ones};
  Parameter<float, Shape<3>> shift{zeros};
  constexpr auto operator()(Distributed auto x, Distributed auto mean_of, Distributed auto variance_of) const {
#ifdef WRONG
    return mean(square(batch_norm(x, mean_of, variance_of, gain, shift)));
#else
    return mean(square(batch_norm(x, gain, shift, mean_of, variance_of)));
#endif
  }
};
using Numbers = Tensor<float, Shape<3>>;
using Step = Training<Model, Sgd, Tensor<float, Shape<8 / data, 3, 4, 4>>, Numbers, Numbers>;
constexpr auto& p = plan<Step, Mesh{data = 2}>;
