// Another element type.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(to<double>(x));
#else
    return mean(cast<double>(x));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
