// Keys and values are gathered by name, never by the rule.
// figures: axis<sequence>, length<5>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 2, 8>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    const auto a = matmul(x, q), b = matmul(x, k), c = matmul(x, v);
#ifdef WRONG
    return mean(attention(a, b, c));
#else
    return mean(attention(a, to<On<sequence, Broadcast>>(b), to<On<sequence, Broadcast>>(c))) +
           mean(attention<true, Context::gathered>(a, b, c));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 5 / sequence, 6>>>, Mesh{sequence = 5}>;
