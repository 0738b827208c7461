// Key heads are split by an inner axis of the query heads, not by the outer one.
// figures: axis<data>, query_axes<2>, key_axes<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

#ifdef WRONG
inline constexpr Dim groups = 4 / data;
#else
inline constexpr Dim groups = 4 / tensor;
#endif
struct Model {
  Parameter<float, Shape<6, 8 / tensor / data, 4>> q;
  Parameter<float, Shape<6, groups, 4>> k, v;
  constexpr auto operator()(Distributed auto x) const {
    return mean(attention(matmul(x, q), matmul(x, k), matmul(x, v)));
  }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4, 5, 6>>>, Mesh{data = 2, tensor = 2}>;
