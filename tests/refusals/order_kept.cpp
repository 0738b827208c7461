// The two dimensions that elsewhere are swapped, which here is the order of a matrix as it lies.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 16>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = matmul(x, w);
#ifdef WRONG
    return mean(square(transpose<0, 1>(h) - y));
#else
    return mean(square(transpose<1, 0>(h) - y));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<16 / data, 16>>, Tensor<float, Shape<16, 16 / data>>>,
                         Mesh{data = 2}>;
