// A whole input would be sliced on both axes that split the keys.
// figures: axis<tensor>, length<8>, axes<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v) const {
    return mean(attention<true, Context::ring>(q, k, v));
  }
};
template <Dim positions>
using Heads = Tensor<float, Shape<4, positions, 2, 8>>;
#ifdef WRONG
using Keys = Heads<8 / sequence / tensor>;
#else
using Keys = Heads<8 / sequence>;
#endif
constexpr auto& p = plan<Evaluation<Model, Heads<8>, Keys, Keys>, Mesh{sequence = 2}>;
