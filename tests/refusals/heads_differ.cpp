// Queries have a multiple of the heads of keys and values.
// figures: query_heads<4>, key_heads<3>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
inline constexpr int groups = 3;
#else
inline constexpr int groups = 2;
#endif
struct Model {
  Parameter<float, Shape<6, 4, 8>> q;
  Parameter<float, Shape<6, groups, 8>> k, v;
  constexpr auto operator()(Distributed auto x) const {
    return mean(attention(matmul(x, q), matmul(x, k), matmul(x, v)));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 5, 6>>>, Mesh{data = 2}>;
