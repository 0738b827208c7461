// A product of f32 and bf16 needs a cast.
// figures: left_bytes<4>, right_bytes<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<bfloat16, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(matmul(x, w));
#else
    return mean(matmul(cast<bfloat16>(x), w));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
