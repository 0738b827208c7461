// What is made again needed or not is counted for whole layers.
// figures: layers<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto f = [this](const auto& a) { return gelu(matmul(a, w)); };
#ifdef WRONG
    return mean(square(recompute<Repeat::everything>(f, x)));
#else
    return mean(square(recompute<Repeat::collectives>(f, x)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, AdamW, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
