// A question by a string.
// figures: arguments<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2}>;
#ifdef WRONG
static_assert(p.forward.calls("data") == 1);
#else
static_assert(p.forward.calls(data) == 1 && p.forward.calls(data, all_reduce) == 1 && p.forward.calls(all_reduce) == 1);
#endif
