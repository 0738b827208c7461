// A pool of two is padded by one at most.
// figures: extent<6>, window<2>, stride<2>, padding<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
constexpr int padding = 2;
#else
constexpr int padding = 1;
#endif
struct Model {
  Parameter<float, Shape<4, 1, 1>> gain;
  constexpr auto operator()(Distributed auto x) const { return mean(square(max_pool<2, 2, padding>(x * gain))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 4, 6, 6>>>, Mesh{data = 2}>;
