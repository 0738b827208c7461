// The rule would complete the sum for gelu; a strict program asks that the reduction is written.
// figures: axis<tensor>, moved_from<Partial>, moved_to<Invariant>, bytes<64>, line<15>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6 / tensor, 8>> rows;
  Parameter<float, Shape<8, 4>> out;
  constexpr auto operator()(Distributed auto x) const {
    const auto sum = matmul(x, rows);  // f32[4/data, 8] +tensor
#ifdef WRONG
    // gelu takes no pending sum
    return mean(square(matmul(gelu(sum), out)));
#else
    return mean(square(matmul(gelu(to<On<tensor, Invariant>>(sum)), out)));
#endif
  }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6 / tensor>>>;
constexpr auto& p = plan<Strict<Step>, Mesh{data = 2, tensor = 2}>;
