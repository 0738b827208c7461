// Each rank has its own keys and values only, and nothing says how it finds those of the others.
// figures: axis<sequence>, length<5>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Model {
  Parameter<float, Shape<6, 2, 8>> q, k, v;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(attention(matmul(x, q), matmul(x, k), matmul(x, v)));
#else
    return mean(attention<true, Context::ring>(matmul(x, q), matmul(x, k), matmul(x, v)));
#endif
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 5 / sequence, 6>>>, Mesh{sequence = 5}>;
