// An operation of two operands is applied to one.
// figures: dimensions<0>, needed<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Shaped distances_shape(const Arguments& a) {
  for (int i : {0, 1})
    if (a.rank(i) != 2) return {{a.types[0]}, {Reason::wrong_rank, {a.rank(i), 2}}};
  return {{a.types[0]}, {}};
}
constexpr Signatures distances_table(const Arguments&) { return {uniform_row(2, 1, Broadcast)}; }
constexpr Operation distances{.name = "distances", .shape = distances_shape, .signatures = distances_table};

struct Model {
  Parameter<float, Shape<6, 6>> w;
  constexpr auto operator()(Distributed auto x) const {
#ifdef WRONG
    return mean(Apply<distances>{}(Here{}, matmul(x, w)));
#else
    return mean(Apply<distances>{}(Here{}, matmul(x, w), x));
#endif
  }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<4, 6>>>, Mesh{}>;
