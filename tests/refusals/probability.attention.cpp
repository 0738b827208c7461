// Whether attention is causal stands among the template's arguments; as a number it is the probability of dropout.
// figures: line<13>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<16, 2, 8>> query, key, value;
  constexpr auto operator()(Distributed auto x) const {
    const auto q = matmul(x, query), k = matmul(x, key), v = matmul(x, value);
#ifdef WRONG
    return mean(attention(q, k, v, 1.0));
#else
    return mean(attention<true>(q, k, v, 0.1));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<8 / data, 4, 16>>>, Mesh{data = 2}>;
