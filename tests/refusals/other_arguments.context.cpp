// A context stands behind whether attention is causal.
// figures: called::attention, dimensions<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v, Distributed auto seen) const {
#ifdef WRONG
    return attention<Context::ring>(q, k, v);
#else
    return std::tuple(attention<true, Context::ring>(q, k, v), masked_attention<false, Context::ring>(q, k, v, seen));
#endif
  }
};
using Heads = Tensor<float, Shape<2, 8 / sequence, 4, 16>>;
using Predict = Evaluation<Model, Heads, Heads, Heads, Tensor<int, Shape<2, 8 / sequence>>>;
constexpr auto& p = plan<Predict, Mesh{sequence = 2}>;
