// The gradient of the weight is reduced once per step: 192 bytes on two ranks.
// figures: axis<data>, bytes<196>, budget<100>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p = plan<Within<Step, Sent<data, 100>>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Within<Step, Sent<data, 200>>, Mesh{data = 2}>;
static_assert(p.sent(data) == 196);
#endif
