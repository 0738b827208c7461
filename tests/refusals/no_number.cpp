// A line that looks at a value while the model is compiled.
// figures: dimensions<2>
#include <iostream>

#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = matmul(x, w);
#ifdef WRONG
    std::cout << y;
    return mean(square(y));
#else
    return mean(square(y));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
