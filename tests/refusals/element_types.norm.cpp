// A norm and its gain have one element type.
// figures: left_bytes<2>, right_bytes<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6>> gain;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(rms_norm(cast<bfloat16>(x), gain));
#else
    return mean(rms_norm(x, gain));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
