// Old weights of old weights: one number says how many steps.
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
constexpr auto& p = plan<Training<Model, Stale<1, Stale<1, AdamW>>, Batch>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Training<Model, Stale<2, AdamW>, Batch>, Mesh{data = 2}>;
#endif
