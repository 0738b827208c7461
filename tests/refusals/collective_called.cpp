// A collective is called in a model, as torch.distributed's.
// figures: dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<8, 16 / tensor>> up;
  Parameter<float, Shape<16 / tensor, 8>> down;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(square(all_reduce(matmul(gelu(matmul(x, up)), down), tensor)));
#else
    return mean(square(matmul(gelu(matmul(x, up)), down)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 8>>>, Mesh{data = 2, tensor = 2}>;
static_assert(p.forward.calls(all_reduce(tensor)) == 1);
