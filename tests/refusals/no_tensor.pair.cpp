// A number beside a tensor.
// figures: inputs<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    return std::pair(y, 0.5);
#else
    return std::pair(y, mean(y));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
