// A window of five in an image of four rows needs a padding.
// figures: extent<4>, window<5>, stride<1>, padding<0>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
constexpr int padding = 0;
#else
constexpr int padding = 2;
#endif
struct Model {
  Parameter<float, Shape<8, 4, 5, 5>> weight;
  constexpr auto operator()(Distributed auto x) const { return mean(square(convolution<1, padding>(x, weight))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 4, 4, 6>>>, Mesh{data = 2}>;
