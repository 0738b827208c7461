// The place in the source is left out.
// figures: arguments<1>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Operation half{.name = "half", .shape = operation::same_shape, .signatures = operation::linear_table};
template <Distributed X>
constexpr auto halved(const X& x, Here here = {}) {
#ifdef WRONG
  return static_cast<void>(here), Apply<half>{}(x);
#else
  return Apply<half>{}(here, x);
#endif
}

struct Model {
  constexpr auto operator()(Distributed auto x) const { return mean(halved(x)); }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;
