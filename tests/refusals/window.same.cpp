// A padding by name, which is no number.
// figures: extent<12>, window<3>, stride<1>, padding<-1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 3, 3, 3>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(convolution<1, "same">(x, w));
#else
    return mean(convolution<1, 1>(x, w));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 3, 12, 12>>>, Mesh{data = 2}>;
