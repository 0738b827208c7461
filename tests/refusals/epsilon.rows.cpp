// Of rows that are split.
// figures: line<12>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16 / tensor>> gain{ones};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(rms_norm(x, gain, -1e-5)));
#else
    return mean(square(rms_norm(x, gain, 0)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8, 16 / tensor>>>, Mesh{tensor = 2}>;
