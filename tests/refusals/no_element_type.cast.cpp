// Whole numbers are int.
// figures: bytes<8>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return max(cast<long>(x));
#else
    return max(cast<int>(x));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
