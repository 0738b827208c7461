// The rule would gather the activation beside a weight that is split; a strict program asks that the gather is written.
// figures: axis<tensor>, moved_from<Split<0>>, moved_to<Broadcast>, bytes<128>, line<16>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 8>> first;
  Parameter<float, Shape<8, 4 / tensor>> columns;
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = gelu(matmul(x, first));  // f32[4/tensor, 8]
#ifdef WRONG

    // a row of the left, a column of the right
    return mean(square(matmul(hidden, columns)));
#else
    return mean(square(matmul(to<On<tensor, Broadcast>>(hidden), columns)));
#endif
  }
};
constexpr auto& p = plan<Strict<Evaluation<Model, Tensor<float, Shape<4 / tensor, 6>>>>, Mesh{tensor = 2}>;
