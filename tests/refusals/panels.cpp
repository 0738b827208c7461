// Seven panels of 64 numbers.
// figures: slices<7>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<64 / data, 16 / tensor>> a{xavier};
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(matmul_in_panels<7>(x, a)));
#else
    return mean(square(matmul_in_panels<8>(x, a)));
#endif
  }
};
constexpr auto& p =
    plan<Training<Model, Sgd, Tensor<float, Shape<32 / data, 64 / tensor>>>, Mesh{data = 2, tensor = 2}>;
