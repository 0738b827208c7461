// The program stands before its budgets.
// figures: argument<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Momentum, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p = plan<Within<PeakMemory<4096>, Step>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Within<Step, PeakMemory<4096>>, Mesh{data = 2}>;
#endif
