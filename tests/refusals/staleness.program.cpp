// It is said of the optimizer, not of the program.
// figures: dimensions<1>
#include <parallel/model/stale.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Batch = Tensor<float, Shape<4 / data, 6>>;
#ifdef WRONG
constexpr auto& p = plan<Stale<1, Training<Model, AdamW, Batch>>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Training<Model, Stale<1, AdamW>, Batch>, Mesh{data = 2}>;
#endif
