// A momentum, of channels; and none, over rows that are split.
// figures: line<14>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<3>> gain{ones};
  Parameter<float, Shape<3>> shift{zeros};
  Parameter<float, Shape<4 / tensor>> of_rows{ones};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(batch_norm(x, gain, shift, 0.1)));
#else
    return mean(square(rms_norm(batch_norm(x, gain, shift, 0.09), of_rows, 0)));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<8 / data, 3, 4 / tensor>>>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
