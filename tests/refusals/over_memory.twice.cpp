// Of two budgets both hold.
// figures: bytes<1024>, budget<500>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Momentum, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p = plan<Within<Within<Step, PeakMemory<500>>, PeakMemory<4096>>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Within<Within<Step, PeakMemory<2048>>, PeakMemory<4096>>, Mesh{data = 2}>;
#endif
