// To the heads and back by all-to-all.
// figures: axis<sequence>, length<4>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 4, 8>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
    const auto a = matmul(x, q), b = matmul(x, k), c = matmul(x, v);  // f32[4, 4/sequence, 4, 8]
#ifdef WRONG
    return mean(attention(a, b, c));
#else
    using Heads = On<sequence, Split<2>>;
    return mean(to<On<sequence, Split<1>>>(attention(to<Heads>(a), to<Heads>(b), to<Heads>(c))));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 4 / sequence, 6>>>, Mesh{sequence = 2}>;
