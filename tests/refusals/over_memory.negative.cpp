// 2 << 30 is no number of an int, but -2147483648.
// figures: bytes<1024>, budget<-2147483648>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
using Step = Training<Model, Momentum, Tensor<float, Shape<4 / data, 6>>>;
#ifdef WRONG
constexpr auto& p = plan<Within<Step, PeakMemory<-2147483648>>, Mesh{data = 2}>;
#else
constexpr auto& p = plan<Within<Step, PeakMemory<2_GiB>>, Mesh{data = 2}>;
#endif
