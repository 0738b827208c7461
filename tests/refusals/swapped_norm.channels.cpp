// Of channels.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<3>> gain{ones};
  Parameter<float, Shape<3>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(batch_norm(x, shift, gain)));
#else
    return mean(square(batch_norm(x, gain, shift)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 3, 4, 4>>>, Mesh{data = 2}>;
